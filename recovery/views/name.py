"""One name: how it does, and what stops the bleeding."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from workflows.conf import settings
from workflows.errors import Refused
from workflows.models import Policy

from .. import frame, ranges, tuning
from ..etag import polled
from ..forms import PauseForm, PolicyForm, complaint
from ..queries.name import Named, named
from ..words import duration
from .door import CONFIGURE, SEE, is_htmx, needs, own_transactions

CHARTS: tuple[tuple[str, str, str, list[tuple[str, str]], str], ...] = (
    (
        "throughput",
        "Throughput",
        "Workflows of this name that completed, completed after a recovery, or failed, over time",
        [("completed", "completed"), ("orphan", "recovered"), ("failed", "failed")],
        "",
    ),
    (
        "duration",
        "Duration",
        "Seconds from due to completed, over time: half of the workflows of this name, 95 and 99 in a hundred",
        [],
        "seconds, from due to completed",
    ),
)
PAUSED = {True: "is paused: new work is accepted and not started", False: "starts again"}


@own_transactions
@require_http_methods(["GET", "HEAD", "POST"])
def name(request: HttpRequest, name: str) -> HttpResponseBase:
    return _change(request, name) if request.method == "POST" else _show(request, name)


@needs(SEE)
@polled
def _show(request: HttpRequest, name: str) -> HttpResponse:
    if is_htmx(request):
        return render(request, "rekindle/name.html#living", _seen(request, name) | {"polled": True})
    return _page(request, name)


@needs(SEE, CONFIGURE)
def _change(request: HttpRequest, name: str) -> HttpResponse:
    quick = "pause" in request.POST
    form = PauseForm(request.POST) if quick else PolicyForm(request.POST, instance=Policy(name=name))
    kept = None if isinstance(form, PauseForm) else form
    if not form.is_valid():
        return _page(request, name, kept, complaint(form))
    _seen(request, name)  # nobody makes a policy for a name that does not exist
    changes = {field: value for field, value in form.cleaned_data.items() if field != "reason"}
    if quick:
        changes = {"paused": changes["pause"] == "yes"}
    try:
        tuning.tune_policy(
            name,
            changes,
            by=request.user.get_username(),
            reason=form.cleaned_data["reason"],
            seen=request.POST.get("seen", ""),
        )
    except Refused as refusal:
        return _page(request, name, kept, str(refusal))
    messages.success(request, f"{name} {PAUSED[changes['paused']]}." if quick else f"The policy of {name} is in force.")
    return redirect("rekindle:name", name)


def _page(request: HttpRequest, name: str, form: PolicyForm | None = None, refusal: str = "") -> HttpResponse:
    context = _seen(request, name)
    policy = context["seen"].policy
    kept = {field: policy[field] for field in PolicyForm.Meta.fields} if policy else {}
    form = form or PolicyForm(initial=kept, instance=Policy(name=name))
    more = {
        "form": form.fill_in(_in_force(context["seen"])),
        "charts": CHARTS,
        "query": urlencode(_times(request) | {"name": name}),
        "refusal": refusal,
        "may_configure": request.user.has_perm(CONFIGURE),
    }
    crumbs = [("Workflows", reverse("rekindle:workflows"))]
    around = frame.around(request, "workflows", name, crumbs=crumbs, range=context["over"])
    return render(request, "rekindle/name.html", around | context | more, status=409 if refusal else 200)


def _times(request: HttpRequest) -> dict[str, str]:
    return {key: request.GET[key] for key in ("range", "from", "to") if request.GET.get(key)} or {"range": "24h"}


def _in_force(seen: Named) -> dict[str, str]:
    """What holds where the policy says nothing."""
    now = settings()
    return {
        "concurrency": "no limit",
        "stale_after": _seconds(now.stale_after),
        "max_recovery_attempts": str(now.max_recovery_attempts),
        "run_limit": "as its code says",
        "keep_finished": _seconds(now.keep_finished),
        "mode": seen.everybodys_mode or now.mode,
    }


def _seconds(number: float) -> str:
    return f"{number:.10g}" if number < 60 else f"{number:.10g}, or {duration(number)}"


def _seen(request: HttpRequest, name: str) -> dict[str, Any]:
    try:
        over = ranges.asked(request.GET)
    except ValueError as refusal:
        raise Http404(str(refusal)) from None
    seen: Named | None = named(name, over) if len(name) <= 100 and "\0" not in name and name != "*" else None
    if seen is None or not seen.known:
        raise Http404("No workflow has this name, and no worker has code for it.")
    return {"seen": seen, "over": over, "words": over.words, "here": request.get_full_path()}

"""Every rescue: how many, how fast, after which death; and what admins set: the mode and the thresholds."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from workflows.errors import Refused

from .. import frame, ranges, tuning
from ..etag import polled
from ..forms import MODES, ModeForm, RuleForm, complaint
from ..models import AlertRule
from ..queries.recovery import rescues
from .door import ACT, CONFIGURE, SEE, is_htmx, needs


@require_safe
@needs(SEE)
@polled
def recovery(request: HttpRequest) -> HttpResponse:
    if is_htmx(request):
        return render(request, "rekindle/recovery.html#living", _seen(request))
    return _page(request)


@require_POST
@needs(SEE, CONFIGURE)
def change_mode(request: HttpRequest) -> HttpResponse:
    form = ModeForm(request.POST)
    if not form.is_valid():
        return _page(request, complaint(form))
    mode, reason = form.cleaned_data["mode"], form.cleaned_data["reason"]
    try:
        tuning.tune_policy(
            tuning.EVERYBODY,
            {"mode": mode},
            by=request.user.get_username(),
            reason=reason,
            seen=request.POST.get("seen", ""),
        )
    except Refused as refusal:
        return _page(request, str(refusal))
    messages.success(request, f"Recovery is in mode {mode} now, where a name's own policy says nothing else.")
    return redirect("rekindle:recovery")


@require_POST
@needs(SEE, CONFIGURE)
def change_rule(request: HttpRequest, pk: int) -> HttpResponse:
    form = RuleForm(request.POST)
    if not form.is_valid():
        return _page(request, complaint(form))
    changes = {name: form.cleaned_data[name] for name in ("threshold", "enabled")}
    try:
        rule = tuning.tune_rule(pk, changes, by=request.user.get_username(), reason=form.cleaned_data["reason"])
    except AlertRule.DoesNotExist:
        raise Http404("There is no such rule; perhaps somebody deleted it.") from None
    messages.success(request, f"{rule.name}: {rule.comparison} {rule.threshold:g}, from the next evaluation on.")
    return redirect("rekindle:recovery")


def _page(request: HttpRequest, refusal: str = "") -> HttpResponse:
    seen = _seen(request)
    around = frame.around(request, "recovery", "Recovery", range=seen["over"])
    more = {"refusal": refusal, "may_configure": request.user.has_perm(CONFIGURE), "modes": MODES}
    return render(request, "rekindle/recovery.html", around | seen | more, status=409 if refusal else 200)


def _seen(request: HttpRequest) -> dict[str, Any]:
    try:
        over = ranges.asked(request.GET)
    except ValueError as refusal:
        raise Http404(str(refusal)) from None
    before = request.GET.get("before", "")
    if before and not (before.isdecimal() and len(before) < 19):
        raise Http404("`before` must be the number of a recovery.")
    seen = rescues(over, int(before) if before else None)
    kept = {key: request.GET[key] for key in ("range", "from", "to") if request.GET.get(key)}
    return {
        "seen": seen,
        "over": over,
        "words": over.words,
        "before": before,
        "newest": _url(kept),
        "here": _url(kept | ({"before": before} if before else {})),
        "older": _url(kept | {"before": str(seen.older)}) if seen.older else "",
        "letters": ".".join(row["id"] for row in seen.letters),
        "may_act": request.user.has_perm(ACT),
    }


def _url(query: dict[str, str]) -> str:
    return reverse("rekindle:recovery") + (f"?{urlencode(query)}" if query else "")

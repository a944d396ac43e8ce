"""Every rescue: how many, how fast, after which death; the sweep by hand; and what admins set: mode and thresholds."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from workflows.errors import Refused

from .. import frame, ranges, sweeping, tuning
from ..etag import polled
from ..forms import MODES, ModeForm, RuleForm, complaint
from ..models import AlertRule
from ..queries.recovery import rescues
from .door import ACT, CONFIGURE, SEE, is_htmx, needs, tell

LEGEND = [("orphan", "restart"), ("queued", "stale detection"), ("cancelled", "by hand")]  # of the chart by reason
MOST_DEAD = 50  # workers of an incident whose recoveries are listed


@require_safe
@needs(SEE)
@polled
def recovery(request: HttpRequest) -> HttpResponse:
    if is_htmx(request):
        return render(request, "rekindle/recovery.html#living", _seen(request) | {"polled": True})
    return _page(request)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(SEE, ACT)
def sweep(request: HttpRequest) -> HttpResponse:
    """GET says what a sweep would do now, by the same code, taken back. POST does it."""
    if request.method != "POST":
        return _foreseen(request)
    try:
        duty = sweeping.run_now(by=request.user.get_username())
    except Refused as refusal:
        return _foreseen(request, str(refusal))
    done = f"The sweep found {duty.found}, gave back {duty.recovered} and gave up {duty.failed}."
    sentence = f"The sweep failed: {duty.error}" if duty.error else done
    if is_htmx(request):
        return tell(HttpResponse(status=204), sentence, bad=bool(duty.error))
    (messages.error if duty.error else messages.success)(request, sentence)
    return redirect("rekindle:recovery")


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


def _foreseen(request: HttpRequest, refusal: str = "") -> HttpResponse:
    context = {"sentences": sweeping.foresee(), "trouble": refusal}
    status = 409 if refusal else 200
    if is_htmx(request):
        return render(request, "rekindle/sweep.html#dialog", context, status=status)
    crumbs = [("Recovery", reverse("rekindle:recovery"))]
    around = frame.around(request, "recovery", "What would a sweep do?", crumbs=crumbs)
    return render(request, "rekindle/sweep.html", around | context, status=status)


def _page(request: HttpRequest, refusal: str = "") -> HttpResponse:
    seen = _seen(request)
    around = frame.around(request, "recovery", "Recovery", range=seen["over"])
    more = {"refusal": refusal, "may_configure": request.user.has_perm(CONFIGURE), "modes": MODES, "reasons": LEGEND}
    return render(request, "rekindle/recovery.html", around | seen | more, status=409 if refusal else 200)


def _seen(request: HttpRequest) -> dict[str, Any]:
    try:
        over = ranges.asked(request.GET)
    except ValueError as refusal:
        raise Http404(str(refusal)) from None
    before = request.GET.get("before", "")
    if before and not (before.isdecimal() and len(before) < 19):
        raise Http404("`before` must be the number of a recovery.")
    died = request.GET.get("died", "")
    if died and not all(number.isdecimal() and len(number) < 19 for number in died.split(".")[:MOST_DEAD]):
        raise Http404("`died` must be numbers of workers, joined by dots.")
    workers = [int(number) for number in died.split(".")[:MOST_DEAD]] if died else None
    seen = rescues(over, int(before) if before else None, workers)
    times = {key: request.GET[key] for key in ("range", "from", "to") if request.GET.get(key)}
    kept = times | ({"died": died} if died else {})
    return {
        "seen": seen,
        "over": over,
        "words": over.words,
        "query": urlencode(times) or "range=24h",
        "before": before,
        "died": died,
        "everybody": _url(times),
        "newest": _url(kept),
        "here": _url(kept | ({"before": before} if before else {})),
        "older": _url(kept | {"before": str(seen.older)}) if seen.older else "",
        "may_act": request.user.has_perm(ACT),
    }


def _url(query: dict[str, str]) -> str:
    return reverse("rekindle:recovery") + (f"?{urlencode(query)}" if query else "")

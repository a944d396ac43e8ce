"""How things are: what needs attention first. A poll gets what lives; the charts ask for themselves."""

from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from .. import demo, frame, ranges
from ..etag import polled
from ..queries.overview import overview as read
from .door import ACT, SEE, is_htmx, needs

CHARTS: tuple[tuple[str, str, str, list[tuple[str, str]], str], ...] = (
    (
        "throughput",
        "Throughput",
        "Workflows that completed, completed after a recovery, or failed, over time",
        [("completed", "completed"), ("orphan", "recovered"), ("failed", "failed")],
        "",
    ),
    (
        "resume",
        "Death to running again",
        "Seconds from a worker's last sign of life until its work ran again, over time: half of it, and all but one in a hundred",
        [],
        "seconds, per recovery",
    ),
    (
        "duration",
        "Duration",
        "Seconds from due to completed, over time: half of the workflows, 95 and 99 in a hundred",
        [],
        "seconds, from due to completed",
    ),
    ("queue", "Queue", "Workflows that were due and not yet taken, over time", [], "due, and not yet taken"),
)


@require_safe
@needs(SEE)
@polled
def overview(request: HttpRequest) -> HttpResponse:
    try:
        over = ranges.asked(request.GET)
    except ValueError as refusal:
        raise Http404(str(refusal)) from None
    if is_htmx(request):
        return render(request, "rekindle/overview.html#living", _seen(request, over) | {"polled": True})
    return render(
        request,
        "rekindle/overview.html",
        frame.around(request, "overview", "Overview", range=over) | _seen(request, over) | {"charts": CHARTS},
    )


def _seen(request: HttpRequest, over: ranges.Range) -> dict[str, Any]:
    seen = read(over)
    query = urlencode({key: request.GET[key] for key in ("range", "from", "to") if request.GET.get(key)})
    here = reverse("rekindle:overview") + (f"?{query}" if query else "")
    return {
        "seen": seen,
        "lines": seen.attention,
        "hidden": seen.more_attention,
        "query": query or "range=24h",
        "here": here,
        "words": over.words,
        "may_act": request.user.has_perm(ACT),
        "may_start_demo": demo.is_offered() and request.user.has_perm(ACT),
    }

"""The list of workflows. Polls ask for the rows that are shown, so that none of them jumps."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from .. import frame, ranges, spreadsheet
from ..asking import ACTS
from ..etag import polled
from ..queries import workflows as queries
from ..ranges import Range
from ..search import Known, Search, search, suggestions
from .door import ACT, SEE, is_htmx, needs

LEGEND = [("completed", "completed"), ("orphan", "recovered"), ("failed", "failed")]
BULK = ["recover", "revive", "pause", "resume", "cancel", "fail"]
TIMES = ("range", "from", "to")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address asks for."""

    view: str
    search: Search
    range: Range  # of the chart
    times: dict[str, str]  # the range as the address gives it; the list has one only if it does

    def url(self, page: str = "rekindle:workflows", *place: str, **changes: str) -> str:
        query = {"view": self.view, "q": self.search.text} | self.times | changes
        return f"{reverse(page, args=place)}?{urlencode({key: value for key, value in query.items() if value})}"

    @property
    def wanted(self) -> Any:
        return queries.wanted(self.view, self.search, self.range if self.times else None)


@require_safe
@needs(SEE)
@polled
def workflows(request: HttpRequest) -> HttpResponse:
    asked = asked_for(request)
    if is_htmx(request):
        return render(request, "rekindle/workflows.html#rows", rows(request, asked))
    return render(request, "rekindle/workflows.html", listed(request, asked))


@require_safe
@needs(SEE)
def workflows_csv(request: HttpRequest) -> HttpResponseBase:
    """What the list shows, all pages of it, as far as a spreadsheet goes."""
    return spreadsheet.answer("rekindle-workflows", queries.EXPORT, queries.export(asked_for(request).wanted))


def listed(request: HttpRequest, asked: Asked) -> dict[str, Any]:
    """The whole page."""
    return (
        frame.around(request, "workflows", "Workflows", range=asked.range)
        | rows(request, asked)
        | {
            "chart": urlencode(asked.times) or "range=1h",
            "legend": LEGEND,
            "suggestions": suggestions(),
            "search_keeps": {"view": asked.view} | asked.times,
            "baskets": _baskets(asked) if asked.view == "people" else [],
            "csv": asked.url("rekindle:workflows_csv"),
            "exported": queries.EXPORTED,
            "bulk": [(act, f"{ACTS[act].word}…") for act in BULK],
            "bulk_keeps": {"view": asked.view, "q": asked.search.text} | asked.times,
        }
    )


def rows(request: HttpRequest, asked: Asked) -> dict[str, Any]:
    """What a poll gets: the rows on the page as they are now, and how many came after them."""
    before, shown = _id(request.GET.get("before")), _ids(request.GET.get("ids"))
    page = queries.again(asked.wanted, shown) if shown else queries.page(asked.wanted, before)
    place = {"before": str(before)} if before else {}
    return {
        "page": page,
        "view": asked.view,
        "views": _views(asked),
        "q": asked.search.text,
        "hints": asked.search.hints,
        "chips": _chips(asked),
        "before": before,
        "newest": asked.url(),
        "here": asked.url(**place),
        "poll": asked.url(**place, ids=".".join(str(row.workflow.pk) for row in page.rows)),
        "older": page.older and asked.url(before=str(page.older)),
        "may_act": request.user.has_perm(ACT),
    }


def asked_for(request: HttpRequest) -> Asked:
    """Raises Http404 with a sentence if the address asks for what there is not."""
    view = request.GET.get("view") or "all"
    if view not in queries.VIEWS | queries.QUIET:
        raise Http404(f"There is no view {view!r}; there are {', '.join(queries.VIEWS)}.")
    try:
        over = ranges.asked(request.GET, default="1h")
    except ValueError as refusal:
        raise Http404(str(refusal)) from None
    times = {key: request.GET[key] for key in TIMES if request.GET.get(key)}
    return Asked(view, search(request.GET.get("q", ""), Known(lately=is_htmx(request))), over, times)


def _views(asked: Asked) -> list[tuple[str, str, str]]:
    shown = queries.VIEWS | ({asked.view: queries.QUIET[asked.view]} if asked.view in queries.QUIET else {})
    return [(name, word, asked.url(view=name)) for name, (word, _) in shown.items()]


def _chips(asked: Asked) -> list[tuple[str, str]]:
    """Each filter, and the address without it."""
    chips = [(term.text, asked.url(q=rest)) for term, rest in asked.search.chips]
    if asked.times:
        chips.append((f"asked for: {asked.range.words}", asked.url(**dict.fromkeys(TIMES, ""))))
    return chips


def _baskets(asked: Asked) -> list[tuple[queries.Basket, str]]:
    return [(basket, asked.url(q=f'basket:"{basket.name}"')) for basket in queries.baskets()]


def _id(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        raise Http404("`before` must be the id of a workflow.") from None


def _ids(text: str | None) -> list[UUID]:
    try:
        return [UUID(part) for part in text.split(".")[: queries.PAGE]] if text else []
    except ValueError:
        raise Http404("`ids` must be ids of workflows.") from None

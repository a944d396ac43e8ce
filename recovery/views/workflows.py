"""The list of workflows. Polls ask for the rows that are shown, so that none of them jumps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from .. import demo, frame, jsonlines, ranges, saved, spreadsheet
from ..asking import ACTS
from ..etag import polled
from ..models import SavedView
from ..queries import backlog
from ..queries import workflows as queries
from ..ranges import Range
from ..search import Known, Search, search, suggestions
from .door import ACT, SEE, is_htmx, needs

LEGEND = [("completed", "completed"), ("orphan", "recovered"), ("failed", "failed")]
BULK = ["recover", "revive", "pause", "resume", "move", "cancel", "fail"]
VIEWS = queries.VIEWS | queries.QUIET


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address asks for."""

    view: str
    search: Search
    range: Range  # of the chart
    times: dict[str, str]  # the range as the address gives it; the list has one only if it does
    known: Known  # what the search has read is not read again

    @property
    def query(self) -> dict[str, str]:
        return {"view": self.view} | ({"q": self.search.text} if self.search.text else {}) | self.times

    def url(self, page: str = "rekindle:workflows", *place: str, **changes: str) -> str:
        return _url(page, self.query | changes, *place)

    @property
    def wanted(self) -> Any:
        return queries.wanted(self.view, self.search, self.range if self.times else None)

    @property
    def word(self) -> str:
        return VIEWS[self.view][0]


@dataclass(frozen=True, slots=True)
class Tab:
    id: str
    word: str
    url: str
    on: bool
    title: str = ""
    change: str = ""  # where it is renamed or deleted, for those who may


@require_safe
@needs(SEE)
@polled
def workflows(request: HttpRequest) -> HttpResponse:
    asked = asked_by(request)
    if is_htmx(request):
        return render(request, "rekindle/workflows.html#rows", rows(request, asked))
    return render(request, "rekindle/workflows.html", listed(request, asked))


@require_safe
@needs(SEE)
@polled
def behind(request: HttpRequest) -> HttpResponse:
    """The sentence of a backlog, as long as there is one."""
    return render(request, "rekindle/workflows.html#behind", {"backlog": backlog.now()})


@require_safe
@needs(SEE)
def workflows_csv(request: HttpRequest) -> HttpResponseBase:
    """What the list shows, all pages of it, as far as a spreadsheet goes."""
    return spreadsheet.answer("rekindle-workflows", queries.EXPORT, queries.export(asked_by(request).wanted))


@require_safe
@needs(SEE)
def workflows_jsonl(request: HttpRequest) -> HttpResponseBase:
    """The same for programs."""
    return jsonlines.answer("rekindle-workflows", queries.EXPORT, queries.export(asked_by(request).wanted))


def listed(request: HttpRequest, asked: Asked) -> dict[str, Any]:
    """The whole page."""
    who = saved.person(request.user)
    around = queries.around(who.key, baskets=asked.view == "people")
    tabs = _tabs(asked, around.saved, who)
    return (
        frame.around(request, "workflows", "Workflows", range=asked.range)
        | rows(request, asked)
        | {
            "chart": urlencode(asked.times) or "range=1h",
            "legend": LEGEND,
            "suggestions": suggestions(asked.known),
            "asked_for": asked.query,
            "search_keeps": {"view": asked.view} | asked.times,
            "tabs": tabs,
            "change": next((tab.change for tab in tabs if tab.on), ""),
            "keep": asked.url("rekindle:keep_view", back=asked.url()) if _is_new(asked, tabs) else "",
            "baskets": [_basket(asked, basket) for basket in around.baskets],
            "backlog": around.backlog,
            "csv": asked.url("rekindle:workflows_csv"),
            "jsonl": asked.url("rekindle:workflows_jsonl"),
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
        "calm": queries.calm() if asked.view == "attention" and not page.rows else None,
        "view": asked.view,
        "q": asked.search.text,
        "hints": asked.search.hints,
        "chips": _chips(asked),
        "before": before,
        "newest": asked.url(),
        "here": asked.url(**place),
        "poll": asked.url(**place, ids=".".join(str(row.workflow.pk) for row in page.rows)),
        "older": page.older and asked.url(before=str(page.older)),
        "may_act": request.user.has_perm(ACT),
        "may_start_demo": demo.is_offered() and request.user.has_perm(ACT),
    }


def asked_by(request: HttpRequest) -> Asked:
    """Raises Http404 with a sentence if the address asks for what there is not."""
    view = request.GET.get("view") or "all"
    if view not in VIEWS:
        raise Http404(f"There is no view {view!r}; there are {', '.join(queries.VIEWS)}.")
    try:
        over = ranges.asked(request.GET, default="1h")
    except ValueError as refusal:
        raise Http404(str(refusal)) from None
    times = {key: request.GET[key] for key in saved.TIMES if request.GET.get(key)}
    known = Known(lately=is_htmx(request))
    return Asked(view, search(request.GET.get("q", ""), known), over, times, known)


def of_view(view: SavedView) -> Asked:
    times, known = saved.times_of(view), Known(lately=True)
    return Asked(view.view, search(view.search, known), _range(times), times, known)


def _range(times: Mapping[str, str]) -> Range:
    try:
        return ranges.asked(times, default="1h")
    except ValueError:  # what was kept has grown too long
        return ranges.asked({}, default="30d")


def _tabs(asked: Asked, kept: list[SavedView], who: saved.Person) -> list[Tab]:
    """The views everybody has, and the lists this person kept. What the address asks for is on, if it is one of them."""
    found = [_tab(asked, view, who) for view in kept if view.view in VIEWS]
    plain = asked.view if not any(tab.on for tab in found) else ""
    shown = queries.VIEWS | ({asked.view: queries.QUIET[asked.view]} if asked.view in queries.QUIET else {})
    ours = [Tab(f"view-{name}", word, asked.url(view=name), name == plain) for name, (word, _) in shown.items()]
    return ours + found


def _is_new(asked: Asked, tabs: list[Tab]) -> bool:
    """Worth keeping: more than a tab already shows."""
    kept = any(tab.on and tab.id.startswith("saved-") for tab in tabs)
    return bool(asked.search.text or asked.times) and not kept


def _tab(asked: Asked, view: SavedView, who: saved.Person) -> Tab:
    times = saved.times_of(view)
    query = {"view": view.view, "q": view.search} | times
    return Tab(
        id=f"saved-{view.pk}",
        word=view.name,
        url=_url("rekindle:workflows", query),
        on=(view.view, view.search, times) == (asked.view, asked.search.text, asked.times),
        title=f"Shared by {view.owner_name}" if view.shared else "Only you see it",
        change=reverse("rekindle:saved_view", args=[view.pk]) if who.may_change(view) else "",
    )


def _url(page: str, query: Mapping[str, str], *place: str) -> str:
    return f"{reverse(page, args=place)}?{urlencode({key: value for key, value in query.items() if value})}"


def _basket(asked: Asked, basket: queries.Basket) -> tuple[queries.Basket, str, bool]:
    """With its address; that of the one looked at leads back to all."""
    only = f'basket:"{basket.name}"'
    on = asked.search.text == only
    return basket, asked.url(q="" if on else only), on


def _chips(asked: Asked) -> list[tuple[str, str]]:
    """Each filter, and the address without it."""
    chips = [(term.text, asked.url(q=rest)) for term, rest in asked.search.chips]
    if asked.times:
        chips.append((f"asked for: {asked.range.words}", asked.url(**dict.fromkeys(saved.TIMES, ""))))
    return chips


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

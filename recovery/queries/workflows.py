"""The list of workflows: a page of it, the same page again, one row, and all of it for a spreadsheet."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.postgres.aggregates import ArrayAgg
from django.db import connections
from django.db.models import Case, Count, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Left

from workflows.conf import settings
from workflows.models import PauseReason, Status, Step, Workflow

from ..backlog import Backlog
from ..models import SavedView
from ..ranges import Range
from ..search import Search, troubles
from ..search.matching import created
from . import backlog
from .baskets import USED
from .lengths import lengths
from .together import together

PAGE = 50
MOST_NEW = 100
COUNTED = 10_000  # more need not be counted to say "many"
EXPORTED = 10_000
LAST = UUID(int=(1 << 128) - 1)

VIEWS: dict[str, tuple[str, Callable[[], Q]]] = {
    "all": ("All", Q),
    "running": ("Running", lambda: Q(status=Status.RUNNING)),
    "attention": ("Needs attention", lambda: troubles.among(troubles.ATTENTION, troubles.reviewed())),
    "failed": ("Failed", lambda: Q(status=Status.FAILED)),
    "recovered": ("Recovered today", lambda: troubles.among(troubles.RECOVERED)),
    "people": ("Waiting for people", lambda: troubles.among(troubles.PEOPLE, troubles.automatic())),
}
# Behind tiles and lines of the overview; among the tabs only while one looks at them.
QUIET: dict[str, tuple[str, Callable[[], Q]]] = {
    "waiting": ("Waiting", lambda: Q(status__in=[Status.PENDING, Status.QUEUED, Status.PAUSED])),
    "completed": ("Completed", lambda: Q(status=Status.COMPLETED)),
}

# Basket by basket, each counted in the index.
BASKETS = f"""WITH RECURSIVE {USED} SELECT used.basket AS name, waiting.count, waiting.oldest FROM used CROSS JOIN LATERAL (
    SELECT count(*) AS count, min(began_at) AS oldest FROM (SELECT began_at FROM rekindle_step
        WHERE status = 'waiting' AND basket <> '' AND basket = used.basket AND {troubles.ALIVE} LIMIT {COUNTED + 1}) s) waiting
WHERE waiting.count > 0 AND used.basket <> ALL(%(automatic)s) ORDER BY 3 NULLS LAST, 1 LIMIT 50"""  # noqa: S608
IDS = f"""SELECT count(*), count(*) FILTER (WHERE id > %s), (array_agg(id ORDER BY id DESC))[1:{PAGE + 1}]
FROM (SELECT DISTINCT id FROM ({{ids}}) AS found(id) ORDER BY id DESC LIMIT {COUNTED + 1}) AS newest"""  # noqa: S608  (constants)
KEPT = """SELECT id, name, owner, owner_name, shared, view, search, range FROM rekindle_recovery_savedview
WHERE owner = %(owner)s OR shared ORDER BY shared, lower(name), id LIMIT 100"""

CALM = """SELECT (SELECT began_at FROM rekindle_recovery_duty WHERE name = 'sweep' ORDER BY began_at DESC LIMIT 1) AS swept,
    (SELECT count(*) FROM (SELECT FROM rekindle_recovery_recovery WHERE detected_at > now() - interval '24 hours' LIMIT 1000) r) AS found"""

PAUSES = {
    PauseReason.SLEEP: "Sleeping",
    PauseReason.RETRY: "Retrying",
    PauseReason.PEND: "Pended",
    PauseReason.SUSPENDED: "Suspended",
    PauseReason.BLOCKED: "Blocked",
    PauseReason.LANE: "In lane",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One workflow as the list shows it."""

    workflow: Workflow
    state: str  # names the icon and the colour
    word: str
    step: str
    nth: str  # which step this is: 3/7 as the workflow tells, or as those before it had; #3 where nobody can say
    error: str
    can_recover: bool
    can_fail: bool
    left: bool  # it was in this view when the page was drawn, and no longer is


@dataclass(frozen=True, slots=True)
class Page:
    rows: list[Row]
    older: UUID | None = None  # the id before which the next page begins
    newer: str = ""  # how many came after these
    count: str = ""


@dataclass(frozen=True, slots=True)
class Basket:
    name: str
    count: str
    oldest: datetime | None


class _Counted(NamedTuple):
    all: int
    new: int
    first: list[UUID]  # what a page shows, and one more


class _First(ArrayAgg):
    template = f"({ArrayAgg.template})[1:{PAGE + 1}]"


@dataclass(frozen=True, slots=True)
class Around:
    """What a page of the list shows beside its rows."""

    saved: list[SavedView]
    baskets: list[Basket]
    backlog: Backlog | None


def wanted(view: str, search: Search, over: Range | None = None) -> Q:
    """What a list shows: its view, what was searched for, and when it was asked for."""
    within = created(over.start, over.end if over.key == "custom" else None) if over else Q()
    return (VIEWS | QUIET)[view][1]() & search.wanted & within


def page(wanted: Q, before: UUID | None = None) -> Page:
    """The newest workflows, or those before an id. Ids are in the order of creation.

    Their ids first, and by them the rows: ids alone are found in an index, however rare what is wanted is.
    """
    counted = _count(wanted)
    ids = list(_ids(wanted).filter(pk__lt=before)[: PAGE + 1]) if before else counted.first
    rows = _rows(_workflows().filter(pk__in=ids[:PAGE]).order_by("-pk")) if ids else []
    return Page(rows, ids[PAGE - 1] if len(ids) > PAGE else None, count=_capped(counted.all))


def again(wanted: Q, shown: list[UUID]) -> Page:
    """The rows a page already shows, as they are now, in their places; and how many it does not show yet."""
    found = _workflows().filter(pk__in=shown).order_by("-pk")
    if wanted:
        found = found.annotate(stays=Case(When(wanted, then=Value(True)), default=Value(False)))
    counted = _count(wanted, max(shown))
    newer = f"{MOST_NEW - 1}+" if counted.new >= MOST_NEW else str(counted.new or "")
    return Page(_rows(found), newer=newer, count=_capped(counted.all))


def one(pk: UUID) -> Row | None:
    return next(iter(_rows(_workflows().filter(pk=pk))), None)


def around(owner: str, *, baskets: bool) -> Around:
    """The lists a person kept; how far behind we are; and where something waits for people, the longest wait first."""
    questions = {"saved": KEPT, "due": backlog.DUE, "pace": backlog.PACE} | ({"baskets": BASKETS} if baskets else {})
    found = together(backlog.GIVEN | {"owner": owner, "automatic": troubles.automatic()}, **questions)
    return Around(
        saved=[SavedView(**row) for row in found["saved"]],
        baskets=[_basket(row) for row in found.get("baskets", ())],
        backlog=backlog.read(found["due"], found["pace"]),
    )


def calm() -> dict[str, Any]:
    """Why one may believe that all is well: when somebody last looked, and how many orphans there were in 24 hours."""
    (row,) = together({}, calm=CALM)["calm"]
    return {"swept": row["swept"] and datetime.fromisoformat(row["swept"]), "found": row["found"]}


def export(wanted: Q) -> Iterator[tuple[Any, ...]]:
    """A line for each workflow, newest first: nothing of what went in or came out."""
    rows = Workflow.objects.using(settings().database).filter(pk__in=_ids(wanted)[:EXPORTED]).order_by("-pk")
    return rows.values_list(*EXPORT).iterator(chunk_size=500)


EXPORT = (
    "id", "name", "version", "key", "generation", "status", "pause_reason", "basket", "recoveries", "recovery_attempts",
    "created_at", "due_at", "started_at", "finished_at", "lateness",
)  # fmt: skip


def _ids(wanted: Q) -> QuerySet[Workflow, UUID]:
    return Workflow.objects.using(settings().database).filter(wanted).order_by("-pk").values_list("pk", flat=True)


def _count(wanted: Q, after: UUID | None = None) -> _Counted:
    """How many there are, how many of them came after an id, and the first of them; not counted without end."""
    if ids := troubles.alone(wanted):
        with connections[settings().database].cursor() as cursor:
            cursor.execute(IDS.format(ids=ids.sql), [after or LAST, *ids.params])
            all, new, first = cursor.fetchone()
            return _Counted(all, new, first or [])
    counts = _ids(wanted)[: COUNTED + 1].aggregate(
        all=Count("pk"), new=Count("pk", filter=Q(pk__gt=after or LAST)), first=_First("pk", order_by="-pk")
    )
    return _Counted(counts["all"], counts["new"], counts["first"] or [])


def _capped(number: int) -> str:
    return f"{COUNTED // 1000}k+" if number > COUNTED else f"{number:,}"


def _basket(row: dict[str, Any]) -> Basket:
    return Basket(row["name"], _capped(row["count"]), row["oldest"] and datetime.fromisoformat(row["oldest"]))


def _workflows() -> QuerySet[Workflow, Any]:
    # On the outermost path, so that the unique index answers: inside a parallel block this names the block.
    last_step = Step.objects.filter(workflow=OuterRef("pk"), path=".").order_by("-position")
    return (
        Workflow.objects.using(settings().database)
        .select_related("worker")
        .defer("input", "variables", "output", "error", "search", "suspects")
        .annotate(
            last_step=Subquery(last_step.values("name")[:1]),
            last_position=Subquery(last_step.values("position")[:1]),
            message=Left(KeyTextTransform("message", "error"), 200),
        )
    )


def _rows(found: Iterable[Any]) -> list[Row]:
    workflows = list(found)
    known = lengths((each.name, each.version) for each in workflows if each.last_position is not None)
    return [_row(each, known.get((each.name, each.version))) for each in workflows]


def _row(workflow: Any, steps: int | None) -> Row:
    state, word = _state(workflow)
    return Row(
        workflow=workflow,
        state=state,
        word=word,
        step=workflow.last_step or "",
        nth=_nth(workflow, steps),
        error=_error(workflow) if workflow.status == Status.FAILED else "",
        can_recover=state == "orphan" or workflow.status == Status.FAILED,
        can_fail=not workflow.is_finished,
        left=not getattr(workflow, "stays", True),
    )


def _error(workflow: Any) -> str:
    """The step is named beside it; once is enough."""
    return str(workflow.message or "").removeprefix(f"step {workflow.last_step} failed: ")


def _nth(workflow: Any, steps: int | None) -> str:
    told = workflow.progress or {}
    if told.get("total"):
        return f"{told.get('done', 0)}/{told['total']}"
    if workflow.last_position is None:
        return ""
    nth = workflow.last_position + 1
    whole = nth if workflow.status == Status.COMPLETED else steps
    return f"{nth}/{whole}" if whole and nth <= whole else f"#{nth}"


def _state(workflow: Workflow) -> tuple[str, str]:
    if workflow.status == Status.RUNNING and (workflow.worker is None or workflow.worker.ended_at is not None):
        return "orphan", "Orphan"
    if workflow.status == Status.PAUSED:
        return "paused", PAUSES.get(PauseReason(workflow.pause_reason), "Paused") if workflow.pause_reason else "Paused"
    return workflow.status, Status(workflow.status).label

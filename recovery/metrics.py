"""The one place where a figure is defined. A figure is a function of a window and a scope; alerts and pages ask for it
by its key. The scope is a workflow name, or empty for all; a figure that has nothing to do with names ignores it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db.models import Max, QuerySet
from django.db.models.functions import Now

from workflows.attempt import REVIEW
from workflows.conf import settings
from workflows.models import PauseReason, Status, Step, Worker, Workflow

from .late import catch_up
from .models import Duty, Recovery
from .models.recovery import UNRECOVERED, Outcome, Reason

COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Measured:
    value: float
    details: dict[str, Any] = field(default_factory=dict)  # what is affected, in words an operator knows


Figure = Callable[[float, str], Measured]
ALERTABLE: dict[str, Figure] = {}


def figure(key: str) -> Callable[[Figure], Figure]:
    def register(function: Figure) -> Figure:
        ALERTABLE[key] = function
        return function

    return register


def measure(key: str, window: float = 3600, scope: str = "") -> Measured:
    if key not in ALERTABLE:
        raise LookupError(f"No figure is called {key!r}. There are: {', '.join(sorted(ALERTABLE))}.")
    return ALERTABLE[key](window, scope)


@figure("recovery.triggered")
def recoveries(window: float, scope: str) -> Measured:
    """S0-096: what the watch took over by itself."""
    taken = _recoveries(scope).exclude(reason=Reason.MANUAL).exclude(outcome=Outcome.OBSERVED)
    return _counted(taken.filter(detected_at__gt=_ago(window)))


@figure("recovery.failed")
def failed_recoveries(window: float, scope: str) -> Measured:
    """S0-097: died again, given up or refused."""
    return _counted(_recoveries(scope).filter(outcome__in=UNRECOVERED, settled_at__gt=_ago(window)))


@figure("recovery.max_attempts_exceeded")
def attempts_exhausted(window: float, scope: str) -> Measured:
    """S0-098: permanent failures."""
    return _counted(_recoveries(scope).filter(outcome=Outcome.GAVE_UP, settled_at__gt=_ago(window)))


@figure("stale_duration")
def stale_duration(window: float, scope: str) -> Measured:
    """S0-099: the longest, in seconds, that work had nobody: of what was found in the window and of what still has."""
    found = _recoveries(scope).filter(detected_at__gt=_ago(window)).aggregate(most=Max("seconds_to_detect"))["most"]
    orphans = _workflows(scope).filter(worker__ended_at__isnull=False).annotate(now=Now())
    oldest = orphans.order_by("worker__heartbeat_at").values_list("now", "worker__heartbeat_at").first()
    now = (oldest[0] - oldest[1]).total_seconds() if oldest else 0.0
    return Measured(max(found or 0.0, now), {"stillStale": min(orphans[:COUNTED].count(), COUNTED)})


@figure("late")
def late(window: float, scope: str) -> Measured:
    """S2-074: due or begun later than the grace."""
    behind = catch_up(window, scope)
    details = {"lateEvents": behind.late, "oldestEventAge": int(behind.oldest_seconds // 60), "waiting": behind.waiting}
    return Measured(behind.late, details)


@figure("scheduler_silence")
def scheduler_silence(window: float, scope: str) -> Measured:
    """S2-075, C24: seconds since the scheduler itself last ran a duty, whoever stood in for it."""
    runs = Duty.objects.using(settings().database).annotate(now=Now()).values_list("now", "began_at")
    last = runs.filter(name="sweep", ran_by="scheduled task").order_by("-began_at").first()
    since = last or runs.order_by("began_at").first()
    if since is None:
        return Measured(0, {"lastRun": None, "minutesSinceLastRun": None})
    seconds = (since[0] - since[1]).total_seconds()
    return Measured(
        seconds, {"lastRun": last and last[1].isoformat(), "minutesSinceLastRun": last and round(seconds / 60, 1)}
    )


@figure("workers_alive")
def workers_alive(window: float, scope: str) -> Measured:
    workers = Worker.objects.using(settings().database).filter(ended_at=None)
    return Measured(workers.filter(heartbeat_at__gt=_ago(settings().stale_after)).count())


@figure("dead_letters")
def dead_letters(window: float, scope: str) -> Measured:
    """Failed, and nobody has revived or discarded it."""
    failed = _workflows(scope).filter(status=Status.FAILED).exclude(error__has_key="discarded")
    return Measured(
        failed.order_by("finished_at")[:COUNTED].count(), {"names": _names(failed.order_by("-finished_at"))}
    )


@figure("needs_people")
def needs_people(window: float, scope: str) -> Measured:
    """Held for review, blocked, or beyond what recovery can repair."""
    held = Step.objects.using(settings().database).filter(status=Step.Status.WAITING, basket=REVIEW)
    held = held.filter(workflow__finished_at=None)  # what ended while it waited keeps its wait
    held = held.filter(workflow__name=scope) if scope else held
    blocked = _workflows(scope).filter(pause_reason=PauseReason.BLOCKED)
    broken = _workflows(scope).filter(pause_reason=PauseReason.SUSPENDED, error__isnull=False)
    details = {"held": held.count(), "blocked": blocked.count(), "beyondRepair": broken.count()}
    return Measured(sum(details.values()), details | {"names": _names(blocked | broken)})


@figure("overdue")
def overdue(window: float, scope: str) -> Measured:
    """What the last look for overdue wake-ups found: due for long, and nothing stands in the way."""
    last = Duty.objects.using(settings().database).filter(name="wake", ended_at__isnull=False).order_by("-began_at")
    duty = last.first()
    found = (duty.note or {}).get("overdue", []) if duty else []
    if scope:
        found = [one for one in found if one["name"] == scope]
    return Measured(len(found) if scope or not duty else duty.found, {"overdue": found})


def _ago(seconds: float) -> Any:
    return Now() - timedelta(seconds=seconds)


def _recoveries(scope: str) -> QuerySet[Recovery]:
    rows = Recovery.objects.using(settings().database)
    return rows.filter(workflow_name=scope) if scope else rows.all()


def _workflows(scope: str) -> QuerySet[Workflow]:
    rows = Workflow.objects.using(settings().database)
    return rows.filter(name=scope) if scope else rows.all()


def _counted(rows: QuerySet[Recovery]) -> Measured:
    names = list(rows.order_by("-detected_at").values_list("workflow_name", flat=True)[:COUNTED])
    return Measured(len(names), {"names": sorted(set(names))[:5]})


def _names(rows: QuerySet[Workflow]) -> list[str]:
    return sorted(set(rows.values_list("name", flat=True)[:200]))[:5]

"""The duties: what has to be looked after again and again, declared here and nowhere else.

django-q2 runs each every minute, the first time as its cluster starts; a worker stands in for one that is overdue.
Every run is a Duty record, written before the work begins: a run that was killed stays visible as one that never
ended. A duty that fails is recorded and stops no other.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from typing import Any, NamedTuple

from django.conf import settings as django_settings
from django.db import DatabaseError, connections, transaction
from django.db.models.functions import Now

from workflows.conf import settings

from . import alerts, retention, rollup, schedules, wake
from .batches import carrying
from .bounds import bounded
from .models import Duty
from .sweep import BUDGET, sweep_now
from .tally import Tally

log = logging.getLogger("rekindle")

LONGEST = 45.0  # seconds a run may take; less where the host's cluster is less patient
BEGINNING = 7_261_101  # any number: who holds this advisory lock, and the duty's, may begin it


class Declared(NamedTuple):
    act: Callable[[str, float], Tally]  # given who runs it, and the monotonic time by which to be done
    every: float = 60


def sweep(ran_by: str, deadline: float) -> Tally:
    """Find dead workers and give their work back. Counted as C37 asks: what was found is not what was recovered."""
    log.debug("Scanning for orphaned cases...")
    done = sweep_now(ran_by, budget=min(BUDGET, deadline - time.monotonic()))
    tally = Tally(
        found=done.get("found", sum(done.values())),
        recovered=done.get("released", 0),
        failed=done.get("gave_up", 0),
        held=done.get("held", 0),
        skipped=done.get("skipped", 0),
    )
    if cancelled := done.get("cancelled"):
        tally.note["cancelled"] = cancelled
    level = logging.DEBUG if tally.quiet else logging.INFO
    log.log(level, "Recovery scan complete. Recovered %s cases", tally.recovered, extra=tally.counts)
    return tally


DUTIES: dict[str, Declared] = {
    "sweep": Declared(sweep),
    "wake": Declared(wake.wake),
    "batches": Declared(carrying.duty),
    "alerts": Declared(alerts.evaluate),
    "figures": Declared(rollup.roll_up),
    "schedules": Declared(schedules.repair),
    "retention": Declared(retention.forget),
}


FIRST = "sweep"  # when a cluster starts, and of it the sentence tells


def scheduled(name: str) -> None:
    """What the schedules call."""
    run_as_scheduled(name)


def run_as_scheduled(name: str) -> Duty | None:
    """Tasks that piled up while nobody worked on them do not all run."""
    return run(name, "scheduled task", unless_within=DUTIES[name].every / 2)


def run(name: str, ran_by: str, *, unless_within: float = 0) -> Duty | None:
    """Run a duty now and record it. None if it began within that many seconds, or is just beginning elsewhere."""
    with bounded(settings().database, budget()):
        duty = _begin(name, ran_by, unless_within)
        if duty is None:
            return None
        began = time.monotonic()
        try:
            tally = DUTIES[name].act(ran_by, began + budget())
        except BaseException as error:
            log.exception("Scheduler error", extra={"duty": name})
            _end(duty, Tally(), error=f"{type(error).__name__}: {error}")
            if not isinstance(error, Exception):
                raise  # the cluster's time-out, or the end of this process
            return duty
        _end(duty, tally)
        _tell(name, tally, time.monotonic() - began)
        return duty


def overdue(intervals: float = 2) -> list[str]:
    """Duties whose last run began longer ago than so many of their intervals, or that never ran."""
    query = """SELECT n.name FROM unnest(%s::text[], %s::float8[]) AS n(name, seconds)
        WHERE NOT EXISTS (SELECT FROM rekindle_recovery_duty d
            WHERE d.name = n.name AND d.began_at > now() - n.seconds * interval '1 second')"""
    with connections[settings().database].cursor() as cursor:
        cursor.execute(query, [list(DUTIES), [declared.every * intervals for declared in DUTIES.values()]])
        found = {row[0] for row in cursor.fetchall()}
    return [name for name in DUTIES if name in found]


def budget() -> float:
    """Seconds a run may take: clearly less than the time after which the host's cluster kills a task."""
    return min(LONGEST, patience() * 0.8)


def patience() -> int:
    """After how many seconds the host's cluster kills a task; ours, if it never would."""
    return int(getattr(django_settings, "Q_CLUSTER", {}).get("timeout") or LONGEST + 10)


def _begin(name: str, ran_by: str, unless_within: float) -> Duty | None:
    """The lock is held only until the record is there, which then speaks for itself."""
    database = settings().database
    with transaction.atomic(using=database):
        with connections[database].cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s, hashtext(%s))", [BEGINNING, name])
            if not cursor.fetchone()[0]:
                return None
        runs = Duty.objects.using(database)
        if runs.filter(name=name, began_at__gt=Now() - timedelta(seconds=unless_within)).exists():
            return None
        return runs.create(name=name, ran_by=ran_by)


def _end(duty: Duty, tally: Tally, error: str = "") -> None:
    changes = asdict(tally) | {"note": tally.note or None, "error": error[:500].replace("\0", ""), "ended_at": Now()}
    record = Duty.objects.using(settings().database).filter(pk=duty.pk)
    try:
        record.update(**changes)
    except DatabaseError:
        connections[settings().database].close()  # perhaps it was only the connection that was lost
        record.update(**changes)
    duty.refresh_from_db()


def _tell(name: str, tally: Tally, seconds: float) -> None:
    facts: dict[str, Any] = {"duty": name, "processed": tally.recovered, "failed": tally.failed}
    facts |= {"durationMs": round(seconds * 1000), "eventsPerSecond": f"{tally.recovered / max(seconds, 0.001):.2f}"}
    log.log(logging.DEBUG if tally.quiet else logging.INFO, "Scheduler job completed", extra=facts)

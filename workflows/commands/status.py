"""`status`: how much there is, who works, and how late the oldest is."""

from argparse import ArgumentParser
from typing import Any

from django.db import connections
from django.db.models import QuerySet
from django.db.models.functions import Now

from ..conf import settings
from ..liveness import LOCKED
from ..models import Status, Workflow
from .answer import Answer, Options, Verb
from .table import moment, pairs, table

# A worker is alive if it holds its lock and its heartbeat is fresh; by the database's clock, whatever ours says.
WORKERS = f"""
SELECT id, host, pid, version, release, slots, lost, alone, started_at, heartbeat_at, heartbeat_every,
    EXTRACT(EPOCH FROM clock_timestamp() - heartbeat_at)::float8 AS silent_for,
    pooled OR {LOCKED.format(worker="w.id")} AS locked,
    (SELECT count(*) FROM rekindle_workflow h WHERE h.worker_id = w.id) AS holds
FROM rekindle_worker w WHERE ended_at IS NULL ORDER BY id
"""  # noqa: S608  (constants)
# Most have completed: the others are counted in their own index, all together in the smallest, and no row is looked at.
COUNTS = """SELECT status, count(*) FROM rekindle_workflow WHERE status <> 'completed' GROUP BY 1
UNION ALL SELECT 'all', count(*) FROM rekindle_workflow"""


def count() -> dict[str, int]:
    """How many workflows have each status."""
    with connections[settings().database].cursor() as cursor:
        cursor.execute(COUNTS)
        found: dict[str, int] = dict(cursor.fetchall())
    everything = found.pop("all")
    found[Status.COMPLETED] = everything - sum(found.values())
    return {status: found.get(status, 0) for status in Status.values}


def workers() -> list[dict[str, Any]]:
    """Every worker that has not ended, with what can be said of its life."""
    with connections[settings().database].cursor() as cursor:
        cursor.execute(WORKERS)
        names = [column[0] for column in cursor.description]
        found = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    for worker in found:
        silent = worker["silent_for"] >= settings().stale_after
        worker["state"] = "silent" if silent else "alive" if worker.pop("locked") else "lost its lock"
        worker.pop("locked", None)
    return found


def living() -> list[dict[str, Any]]:
    return [worker for worker in workers() if worker["state"] == "alive"]


def add_arguments(parser: ArgumentParser) -> None:
    """None."""


def run(options: Options) -> Answer:
    rows = Workflow.objects.using(settings().database)
    due = rows.filter(wake_at__lte=Now())
    crew = workers()
    value = {
        "counts": count(),
        "due": due.count(),
        "oldest_due": _oldest(due),
        "orphans": rows.filter(worker__ended_at__isnull=False).count(),
        "workers_alive": sum(worker["state"] == "alive" for worker in crew),
        "workers": crew,
    }
    return Answer(value, _draw(value))


def _oldest(due: QuerySet[Workflow]) -> dict[str, Any] | None:
    late = due.order_by("wake_at").annotate(now=Now()).first()
    if late is None or late.wake_at is None:
        return None
    seconds = (late.now - late.wake_at).total_seconds()
    return {"id": late.pk, "name": late.name, "since": late.wake_at, "seconds": seconds}


def _draw(value: dict[str, Any]) -> str:
    oldest = value["oldest_due"]
    since = oldest and f"{oldest['name']} {oldest['id']}, for {oldest['seconds']:.1f} s"
    numbers = pairs(
        [
            *value["counts"].items(),
            ("due", value["due"]),
            ("oldest due", since or "nothing is due"),
            ("orphans", value["orphans"]),
            ("workers alive", value["workers_alive"]),
        ]
    )
    headings = ("worker", "host", "pid", "version", "release", "slots", "lost", "holds", "heartbeat", "state")
    lines = [
        (
            worker["id"],
            worker["host"],
            worker["pid"],
            worker["version"],
            worker["release"],
            worker["slots"],
            worker["lost"],
            worker["holds"],
            moment(worker["heartbeat_at"]),
            worker["state"],
        )
        for worker in value["workers"]
    ]
    return numbers + (f"\n\n{table(headings, lines)}" if lines else "")


STATUS = Verb("count workflows by status, list the workers, tell the oldest that is due", add_arguments, run)

"""Reading the database and the ledger after the storm: who broke which promise, and how."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connections

from workflows.claiming import why_not_claimed
from workflows.conf import settings
from workflows.inline import InlineConnection
from workflows.models import Workflow

from .ledger import Line
from .shapes import BOOKED, OUTPUT, POISON, Accepted

PROMISES = {
    "I1": "no workflow lost: one end each, and the right one",
    "I2": "no recorded step ran again, atomic effects once",
    "I3": "one writer: fences never fall, nothing after an end",
    "I4": "bounded: the poison is given up, the others live",
    "I5": "diaries without gaps that add up to the state",
    "I8": "no sleep ended early",
}


class Broken(NamedTuple):
    promise: str
    workflow: str
    why: str


# Each returns (workflow id, why) for whoever broke it; %(ids)s are the workflows that were accepted.
QUERIES = {
    "I1": [
        """SELECT w.id, 'ended ' || count(e.id) || ' times' FROM rekindle_workflow w LEFT JOIN rekindle_event e ON e.workflow_id = w.id
             AND e.type IN ('workflow.completed', 'workflow.failed', 'workflow.cancelled')
           WHERE w.id = ANY(%(ids)s) GROUP BY w.id HAVING count(e.id) <> 1""",
        """SELECT min(id::text), 'its key ' || key || ' has ' || count(*) FROM rekindle_workflow WHERE key LIKE %(token)s || '-%%'
           GROUP BY name, key HAVING count(*) > 1""",
    ],
    "I2": [
        """SELECT workflow_id, 'line ' || line || ' was booked ' || count(*) || ' times' FROM rekindle_chaos
           WHERE workflow_id = ANY(%(ids)s) GROUP BY workflow_id, line HAVING count(*) > 1""",
        f"""SELECT w.id, 'booked ' || count(DISTINCT c.line) || ' lines of {BOOKED}' FROM rekindle_workflow w
           LEFT JOIN rekindle_chaos c ON c.workflow_id = w.id
           WHERE w.id = ANY(%(ids)s) AND w.name = 'chaos.books' AND w.status = 'completed'
           GROUP BY w.id HAVING count(DISTINCT c.line) <> {BOOKED}""",  # noqa: S608  (constants)
    ],
    "I3": [
        """SELECT workflow_id, 'event ' || seq || ' (' || type || ') has fence ' || fence || ' after ' || before FROM (
             SELECT *, lag(fence) OVER (PARTITION BY workflow_id ORDER BY seq) AS before FROM rekindle_event
             WHERE workflow_id = ANY(%(ids)s)) e WHERE fence < before""",
        """SELECT e.workflow_id, 'event ' || e.seq || ' is ' || e.type || ', after its end' FROM rekindle_event e
           JOIN rekindle_event last ON last.workflow_id = e.workflow_id AND last.seq < e.seq
             AND last.type IN ('workflow.completed', 'workflow.failed', 'workflow.cancelled')
           WHERE e.workflow_id = ANY(%(ids)s) AND e.type NOT IN ('workflow.zombie_refused', 'workflow.revived')""",
    ],
    "I5": [
        """SELECT w.id, 'has ' || count(e.id) || ' events up to ' || COALESCE(max(e.seq), 0) || ', its row says ' || w.seq
           FROM rekindle_workflow w LEFT JOIN rekindle_event e ON e.workflow_id = w.id WHERE w.id = ANY(%(ids)s)
           GROUP BY w.id HAVING count(e.id) <> w.seq OR max(e.seq) <> w.seq OR min(e.seq) <> 1""",
        """SELECT w.id, 'is ' || w.status || ', its diary ends with ' || e.type FROM rekindle_workflow w CROSS JOIN LATERAL (
             SELECT type FROM rekindle_event WHERE workflow_id = w.id AND type LIKE 'workflow.%%'
               AND type NOT IN ('workflow.zombie_refused') ORDER BY seq DESC LIMIT 1) e
           WHERE w.id = ANY(%(ids)s) AND w.finished_at IS NOT NULL AND e.type <> 'workflow.' || w.status""",
    ],
    "I8": [
        """SELECT workflow_id, 'sleep ' || path || position || ' ended ' || (wake_at - ended_at) || ' early' FROM rekindle_step
           WHERE workflow_id = ANY(%(ids)s) AND kind = 'sleep' AND ended_at < wake_at""",
    ],
}


def judge(accepted: Accepted, lines: Iterable[Line]) -> list[Broken]:
    """Everything that broke a promise; nothing, if all is well."""
    broken = [*_ends(accepted), *_asked_of_the_database(accepted)]
    ran: dict[str, list[Line]] = defaultdict(list)
    known = {str(pk): name for pk, name in accepted.names.items()}
    for line in lines:
        if line.workflow in known:
            ran[line.workflow].append(line)
    recorded = _recorded(accepted)
    for workflow, its in ran.items():
        broken += _ran_again(workflow, its, recorded, lazy=known[workflow] == "chaos.lazy")
    return broken + list(_poisons(accepted, ran))


def _ends(accepted: Accepted) -> Iterator[Broken]:
    rows = {row.pk: row for row in accepted.rows()}
    for key in accepted.twice:
        yield Broken("I1", key, "the same key started two")
    for pk, name in accepted.names.items():
        row = rows.get(pk)
        if row is None:
            yield Broken("I1", str(pk), "is not in the database")
        elif not row.is_finished:
            yield Broken("I1", str(pk), f"{name} is {row.status} {row.pause_reason} after the storm: {_why(row)}")
        elif name != POISON and row.status != "completed":
            promise = "I4" if (row.error or {}).get("type") == "RecoveryFailed" else "I1"
            yield Broken(promise, str(pk), f"{name} {row.status}: {(row.error or {}).get('message')}")
        elif name != POISON and row.output != OUTPUT[name](accepted.numbers[pk]):
            yield Broken("I1", str(pk), f"{name} returned {row.output}, not {OUTPUT[name](accepted.numbers[pk])}")


def _why(row: Workflow) -> str:
    if row.worker_id:
        return f"held by worker {row.worker_id}"
    return why_not_claimed(InlineConnection(), row.pk) or f"due at {row.wake_at}, nothing in its way"


def _asked_of_the_database(accepted: Accepted) -> Iterator[Broken]:
    given: dict[str, Any] = {"ids": list(accepted.names), "token": accepted.token}
    with connections[settings().database].cursor() as cursor:
        for promise, queries in QUERIES.items():
            for query in queries:
                cursor.execute(query, given)
                yield from (Broken(promise, str(pk), why) for pk, why in cursor.fetchall())


def _recorded(accepted: Accepted) -> dict[tuple[str, str, int], int]:
    """Under which fence each finished step was recorded."""
    with connections[settings().database].cursor() as cursor:
        query = "SELECT workflow_id, path, position, fence FROM rekindle_step WHERE workflow_id = ANY(%s) AND status = 'done'"
        cursor.execute(query, [list(accepted.names)])
        return {(str(pk), path, position): fence for pk, path, position, fence in cursor.fetchall()}


def _ran_again(
    workflow: str, lines: list[Line], recorded: dict[tuple[str, str, int], int], *, lazy: bool
) -> Iterator[Broken]:
    """By the database: no body began under a fence after the one that recorded it.

    By the ledger alone: whoever has begun a step has the one before it on record, so no later holder begins before it.
    A lazy workflow promises that only for what it has stored.
    """
    for line in lines:
        fence = recorded.get((workflow, line.path, line.position))
        if fence is not None and line.fence > fence:
            what = f"{line.path}{line.position} was recorded under fence {fence} and began again under {line.fence}"
            yield Broken("I2", workflow, what)
    if lazy:
        return
    reached: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        reached[line.path][line.fence].append(line.position)
    for path, by_fence in reached.items():
        for (fence, before), (later, after) in pairwise(sorted(by_fence.items())):
            if min(after) < max(before):
                what = f"{path}{max(before)} had begun under fence {fence}, {path}{min(after)} began under {later}"
                yield Broken("I2", workflow, what)


def _poisons(accepted: Accepted, ran: dict[str, list[Line]]) -> Iterator[Broken]:
    for row in accepted.rows():
        if row.name != POISON or not row.is_finished:
            continue
        allowed = row.max_recovery_attempts
        deaths = sum(line.position == 1 for line in ran[str(row.pk)])
        message = f"Workflow recovery failed after {allowed} attempts"
        if row.status != "failed" or (row.error or {}).get("message") != message:
            yield Broken("I4", str(row.pk), f"the poison is {row.status}: {row.error}")
        if deaths > allowed + 1:
            yield Broken("I4", str(row.pk), f"the poison killed {deaths} times, {allowed + 1} are allowed")


def explain(workflow: str) -> list[str]:
    """The diary of a workflow, for whoever has to find out."""
    with connections[settings().database].cursor() as cursor:
        query = (
            "SELECT seq, fence, worker, type, path, step, data FROM rekindle_event WHERE workflow_id = %s ORDER BY seq"
        )
        cursor.execute(query, [UUID(workflow)])
        return ["  {} fence {} worker {} {} {}{} {}".format(*row) for row in cursor.fetchall()]

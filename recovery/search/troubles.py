"""Ids of workflows in a certain trouble or place, each found through an index that holds few rows: what is well costs nothing."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.db.models.expressions import RawSQL

from workflows.baskets import RESERVED, kind_of
from workflows.claiming import PAUSED
from workflows.conf import settings

from ..checking import REVIEWED
from ..late import DUE_NAMES, GRACE

# What ended while it waited keeps its wait, for whoever revives it; until then nobody is waited for. Of nearly all that wait an
# index of few entries says that they have not ended; the rows of the others are looked at one by one.
ALIVE = """(EXISTS (SELECT FROM rekindle_workflow w WHERE w.id = workflow_id AND w.basket <> '')
    OR (SELECT w.finished_at IS NULL FROM rekindle_workflow w WHERE w.id = workflow_id))"""
FOR_PEOPLE = "left(basket, 7) <> 'signal:'"
_PENDED = f"SELECT workflow_id FROM rekindle_step WHERE status = 'waiting' AND basket <> '' AND {ALIVE}"  # noqa: S608

ORPHAN = """SELECT w.id FROM rekindle_workflow w LEFT JOIN rekindle_worker k ON k.id = w.worker_id
    WHERE w.status = 'running' AND (k.id IS NULL OR k.ended_at IS NOT NULL)"""
OVERDUE = f"""SELECT w.id FROM (WITH RECURSIVE {DUE_NAMES} SELECT name FROM names
        WHERE name IS NOT NULL AND NOT {PAUSED.format(name="names.name")}) d
    CROSS JOIN generate_series(0, 4) AS level CROSS JOIN LATERAL (
        SELECT id FROM rekindle_workflow WHERE name = d.name AND priority = level AND pause_reason <> 'blocked'
          AND status <> 'running' AND wake_at <= now() - {GRACE} * interval '1 second') w"""  # noqa: S608  (constants)
LATE = f"{OVERDUE} UNION ALL SELECT id FROM rekindle_workflow WHERE lateness >= 60 AND lateness > {GRACE}"  # noqa: S608
HELD = f"{_PENDED} AND basket = ANY(%s)"
UNCERTAIN = f"{HELD} AND error ->> 'type' = 'Crashed'"
BLOCKED = "SELECT id FROM rekindle_workflow WHERE pause_reason = 'blocked'"
GIVEN_UP = "SELECT id FROM rekindle_workflow WHERE error ->> 'type' = 'RecoveryFailed' AND status = 'failed' AND NOT error ? 'discarded'"
CORRUPT = "SELECT id FROM rekindle_workflow WHERE pause_reason = 'suspended' AND error ->> 'type' = 'CorruptState'"
OVERRUNNING = """SELECT w.id FROM rekindle_workflow w LEFT JOIN rekindle_policy p ON p.name = w.name
    WHERE w.worker_id IS NOT NULL AND COALESCE(p.on_run_limit, 'flag') <> 'extend'
      AND w.running_at < now() - COALESCE(p.run_limit, w.run_limit) * interval '1 second'"""
ATTENTION = " UNION ALL ".join([ORPHAN, HELD, BLOCKED, GIVEN_UP, CORRUPT, OVERRUNNING, OVERDUE])

PEOPLE = f"{_PENDED} AND {FOR_PEOPLE} AND basket <> ALL(%s)"
BASKET = f"{_PENDED} AND basket = %s"
RECOVERED = """SELECT workflow_id FROM rekindle_recovery_recovery
    WHERE outcome = 'recovered' AND settled_at >= date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'
      AND EXISTS (SELECT FROM rekindle_workflow w WHERE w.id = workflow_id)"""

# Where something runs, waits, tries again or failed; what became of it since is told by its own row.
STEP = """SELECT workflow_id FROM rekindle_step WHERE name = %(step)s AND status IN ('open', 'waiting', 'again', 'failed')"""
ERROR = """SELECT id FROM rekindle_workflow WHERE error ->> 'type' = %(error)s
    UNION ALL SELECT workflow_id FROM rekindle_step WHERE error ->> 'type' = %(error)s AND status NOT IN ('done', 'dropped')"""
WORKER = "SELECT w.id FROM rekindle_worker k JOIN rekindle_workflow w ON w.worker_id = k.id WHERE k.host = %s"


def among(query: str, *given: Any) -> Q:
    return Q(pk__in=RawSQL(query, given))  # noqa: S611  (one of the constants above)


def alone(wanted: Q) -> RawSQL | None:
    """The ids themselves, if being among them is all that is wanted: then nobody has to look each of them up again."""
    match wanted.children:
        case [("pk__in", RawSQL() as ids)] if not wanted.negated:
            return ids
    return None


def named(query: str, given: Mapping[str, str]) -> Q:
    ordered: list[str] = []
    for name, value in given.items():
        ordered += [value] * query.count(f"%({name})s")
        query = query.replace(f"%({name})s", "%s")
    return among(query, *ordered)


def reviewed() -> list[str]:
    return sorted(basket for basket in _baskets() if kind_of(basket) in REVIEWED)


def automatic() -> list[str]:
    """Baskets out of which nobody has to help."""
    return sorted(basket for basket in _baskets() if kind_of(basket) == "retry")


def _baskets() -> set[str]:
    return {*RESERVED, *(settings().baskets or ())}


def first_id(milliseconds: int) -> UUID:
    """The first id that could be made at a moment: they begin with it."""
    return UUID(int=min(max(milliseconds, 0), (1 << 48) - 1) << 80)

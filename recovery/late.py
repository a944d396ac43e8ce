"""The two questions of seed 2: what was late, what is stuck. And how far behind we are: observed, never branched on (C25).

Due rows are found by probing the claim's own index, a name and a priority level at a time: what sleeps costs nothing.
"""

from dataclasses import dataclass
from typing import Any

from django.db import connections

from workflows.claiming import PAUSED
from workflows.conf import settings

GRACE = 300.0  # seconds: later than that is late (S2-076)
STUCK_AFTER = 3600.0  # seconds (S2-077)
LISTED = 100
COUNTED = 10_000  # enough to say "many"

DUE_NAMES = """names(name) AS (
    (SELECT name FROM rekindle_workflow WHERE wake_at IS NOT NULL ORDER BY name LIMIT 1)
    UNION ALL
    SELECT (SELECT w.name FROM rekindle_workflow w WHERE w.wake_at IS NOT NULL AND w.name > names.name ORDER BY w.name LIMIT 1)
    FROM names WHERE names.name IS NOT NULL
)"""

DUE_SINCE = f"""
WITH RECURSIVE {DUE_NAMES}
SELECT count(*), COALESCE(EXTRACT(EPOCH FROM now() - min(wake_at)), 0)::float8 FROM (
    SELECT w.wake_at FROM names CROSS JOIN generate_series(0, 4) AS level CROSS JOIN LATERAL (
        SELECT wake_at FROM rekindle_workflow
        WHERE name = names.name AND priority = level AND wake_at <= now() - %(seconds)s * interval '1 second'
        ORDER BY wake_at LIMIT %(most)s) w
    WHERE NOT {PAUSED.format(name="names.name")} AND (%(scope)s = '' OR names.name = %(scope)s) LIMIT %(most)s) AS due
"""  # noqa: S608  (constants)

STARTED_LATE = """
SELECT count(*), COALESCE(max(lateness), 0)::float8 FROM (
    SELECT lateness FROM rekindle_workflow WHERE lateness > 60 AND lateness > %(seconds)s
      AND started_at > now() - %(window)s * interval '1 second' AND (%(scope)s = '' OR name = %(scope)s) LIMIT %(most)s) AS late
"""

LATE = """
SELECT id, name, key, due_at, started_at, finished_at, lateness / 60 AS lateness_minutes
FROM rekindle_workflow WHERE lateness > 60 AND lateness > %(seconds)s AND status = 'completed'
ORDER BY lateness DESC LIMIT %(most)s
"""

# Overdue, being run for long, or trying again for long: whatever should have been done by now (C17, C18).
STUCK = f"""
WITH RECURSIVE {DUE_NAMES}, stuck(id) AS (
    SELECT w.id FROM names CROSS JOIN generate_series(0, 4) AS level CROSS JOIN LATERAL (
        SELECT id FROM rekindle_workflow
        WHERE name = names.name AND priority = level AND wake_at < now() - %(seconds)s * interval '1 second'
        ORDER BY wake_at LIMIT %(most)s) w
    UNION (SELECT id FROM rekindle_workflow
        WHERE worker_id IS NOT NULL AND GREATEST(running_at, due_at) < now() - %(seconds)s * interval '1 second'
        ORDER BY due_at LIMIT %(most)s)
    UNION (SELECT id FROM rekindle_workflow
        WHERE pause_reason IN ('retry', 'blocked') AND due_at < now() - %(seconds)s * interval '1 second'
        ORDER BY due_at LIMIT %(most)s)
), oldest AS (
    SELECT w.* FROM stuck JOIN rekindle_workflow w USING (id) WHERE w.due_at < now() - %(seconds)s * interval '1 second'
    ORDER BY w.due_at, w.id LIMIT %(most)s
)
SELECT w.id, w.name, w.key, w.due_at, w.status, w.pause_reason, COALESCE(s.failures, 0) AS attempts,
    COALESCE(s.error, w.error) ->> 'message' AS last_error, EXTRACT(EPOCH FROM now() - w.due_at)::float8 / 60 AS age_minutes
FROM oldest w LEFT JOIN LATERAL (
    SELECT failures, error FROM rekindle_step WHERE workflow_id = w.id AND status NOT IN ('done', 'dropped') AND failures > 0
    ORDER BY id DESC LIMIT 1) s ON true
ORDER BY w.due_at, w.id
"""  # noqa: S608  (constants)

# What was on time counts as 0 late (C26).
PROCESSED = """
SELECT count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status = 'failed'), count(*) FILTER (WHERE late > 0),
    COALESCE(avg(late), 0) / 60, COALESCE(max(late), 0) / 60,
    COALESCE(percentile_disc(0.95) WITHIN GROUP (ORDER BY late), 0) / 60
FROM (SELECT status, CASE WHEN lateness > %(grace)s THEN lateness ELSE 0 END AS late FROM rekindle_workflow
    WHERE finished_at > now() - %(window)s * interval '1 second' AND started_at IS NOT NULL) AS processed
"""


@dataclass(frozen=True, slots=True)
class CatchUp:
    """How far behind: those still due, and those taken within the window, later than the grace."""

    waiting: int
    started: int
    oldest_seconds: float

    @property
    def late(self) -> int:
        return self.waiting + self.started


def catch_up(window: float = 3600, scope: str = "", grace: float = GRACE) -> CatchUp:
    given = {"seconds": grace, "window": window, "scope": scope, "most": COUNTED}
    waiting, oldest = _rows(DUE_SINCE, given)[0]
    started, latest = _rows(STARTED_LATE, given)[0]
    return CatchUp(waiting, started, max(oldest, latest))


def count_due() -> int:
    count: int = _rows(DUE_SINCE, {"seconds": 0, "scope": "", "most": COUNTED})[0][0]
    return count


def late(grace: float = GRACE, most: int = LISTED) -> list[dict[str, Any]]:
    """S2-076: completed, but taken later than the grace; the latest first."""
    columns = ("id", "name", "key", "due_at", "started_at", "finished_at", "lateness_minutes")
    return _dicts(columns, _rows(LATE, {"seconds": grace, "most": most}))


def stuck(after: float = STUCK_AFTER, most: int = LISTED) -> list[dict[str, Any]]:
    """S2-077: not done although it should be for so long; the oldest first."""
    columns = ("id", "name", "key", "due_at", "status", "pause_reason", "attempts", "last_error", "age_minutes")
    return _dicts(columns, _rows(STUCK, {"seconds": after, "most": most}))


def processed(window: float = 3600, grace: float = GRACE) -> dict[str, Any]:
    """What ended within the window, in the words of seed 2 (S2-066 to S2-070)."""
    done, failed, late, average, most, p95 = _rows(PROCESSED, {"window": window, "grace": grace})[0]
    return {
        "eventsProcessed": done,
        "eventsFailed": failed,
        "eventsLate": late,
        "averageLatenessMinutes": average,
        "maxLatenessMinutes": most,
        "p95LatenessMinutes": p95,
        "recoveryMode": late > 0,
    }


def _rows(query: str, given: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connections[settings().database].cursor() as cursor:
        cursor.execute(query, given)
        return list(cursor.fetchall())


def _dicts(columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in rows]

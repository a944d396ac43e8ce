"""What needs attention, found through the few indexes that hold only troubled rows: what is well costs nothing.

Each kind is looked for on its own and grouped by name; of each group the one that has had it longest is loaded in full.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from workflows.baskets import RESERVED, kind_of
from workflows.claiming import PAUSED
from workflows.conf import settings
from workflows.takeover import HOLDERS, MODE

from ..attention import SHOWN, Group, Line, attention, urgent_first
from ..checking import REVIEWED
from ..late import DUE_NAMES, GRACE
from ..lookout import HEARD
from ..verdict import Kind
from ..verdict.waiting import PATIENCE
from .baskets import USED
from .together import Rows
from .workflow import look

MOST = 1000  # of a kind are looked at; a group larger than that is large enough
EACH = 250  # in one basket: no basket hides the others

_HEARD = HEARD.format(worker="k", stale_after="%(stale)s")
ATTENTION = f"""SELECT kind, name, count, id, since FROM (
SELECT kind, name, id, since, count(*) OVER (PARTITION BY kind, name, grouped) AS count,
    row_number() OVER (PARTITION BY kind, name, grouped ORDER BY since, id) AS place FROM (
    (SELECT 'orphan' AS kind, w.name, w.id, COALESCE(r.last_seen_at, r.detected_at) AS since, r.worker_name AS grouped
    FROM rekindle_recovery_recovery r JOIN rekindle_workflow w ON w.id = r.workflow_id
    WHERE r.outcome = 'pending' AND r.resumed_at IS NULL AND w.status = 'running' AND (w.worker_id IS NULL OR r.seq IS NULL) LIMIT {MOST})
    UNION ALL
    (SELECT 'left by its mode', w.name, w.id, COALESCE(k.last_seen_at, k.ended_at), ''
    FROM ({HOLDERS}) AS h JOIN rekindle_worker k ON k.id = h.id
    CROSS JOIN LATERAL (SELECT id, name FROM rekindle_workflow WHERE worker_id = k.id OFFSET 0) w
    LEFT JOIN rekindle_policy p ON p.name = w.name LEFT JOIN rekindle_policy everyone ON everyone.name = '*'
    WHERE {MODE} <> 'enforce' LIMIT {MOST})
    UNION ALL
    (SELECT 'given up', name, id, finished_at, COALESCE(error -> 'open' ->> 0, '')
    FROM (SELECT * FROM rekindle_workflow WHERE status = 'failed' ORDER BY finished_at DESC LIMIT {MOST}) w
    WHERE error ->> 'type' = 'RecoveryFailed' AND NOT error ? 'discarded')
    UNION ALL
    (SELECT 'beyond repair', w.name, w.id, r.settled_at, ''
    FROM rekindle_recovery_recovery r JOIN rekindle_workflow w ON w.id = r.workflow_id
    WHERE r.settled_at > now() - interval '7 days' AND r.outcome = 'refused' AND w.pause_reason = 'suspended' AND w.error ->> 'type' = 'CorruptState' LIMIT {MOST})
    UNION ALL
    (SELECT 'blocked', name, id, COALESCE(running_at, due_at), version::text FROM rekindle_workflow WHERE pause_reason = 'blocked' LIMIT {MOST})
    UNION ALL
    (SELECT CASE WHEN s.basket <> ALL(%(review)s) THEN 'in a basket' WHEN s.error ->> 'type' = 'Crashed' THEN 'uncertain' ELSE 'held for review' END,
        s.name, s.id, s.since, s.basket
    FROM (WITH RECURSIVE {USED} SELECT basket FROM used) AS b CROSS JOIN LATERAL (
        SELECT w.name, w.id, COALESCE(s.began_at, w.due_at) AS since, s.basket, s.error
        FROM rekindle_step s JOIN rekindle_workflow w ON w.id = s.workflow_id AND w.finished_at IS NULL
        WHERE s.status = 'waiting' AND s.basket <> '' AND s.basket = b.basket
            AND (b.basket = ANY(%(review)s) OR s.began_at < now() - %(patience)s * interval '1 second') LIMIT {EACH}) s LIMIT {MOST})
    UNION ALL
    (SELECT 'overrunning', w.name, w.id, w.running_at, ''
    FROM rekindle_workflow w LEFT JOIN rekindle_policy p ON p.name = w.name
    WHERE w.worker_id IS NOT NULL AND COALESCE(p.on_run_limit, 'flag') <> 'extend'
      AND w.running_at < now() - COALESCE(p.run_limit, w.run_limit) * interval '1 second' LIMIT {MOST})
    UNION ALL
    (WITH RECURSIVE {DUE_NAMES} SELECT CASE WHEN NOT d.alive THEN 'no worker' WHEN d.known THEN 'late' ELSE 'no code' END, d.name, w.id, w.wake_at, ''
    FROM (SELECT name, EXISTS (SELECT FROM rekindle_worker k WHERE {_HEARD}) AS alive,
            EXISTS (SELECT FROM rekindle_worker k WHERE {_HEARD} AND k.knows ? name) OR NOT EXISTS (SELECT FROM rekindle_worker k WHERE {_HEARD}) AS known
        FROM names WHERE name IS NOT NULL AND NOT {PAUSED.format(name="names.name")}) d
    CROSS JOIN generate_series(0, 4) AS level CROSS JOIN LATERAL (
        SELECT * FROM rekindle_workflow WHERE name = d.name AND priority = level AND pause_reason <> 'blocked' AND status <> 'running'
          AND wake_at <= now() - CASE WHEN d.known THEN %(grace)s ELSE 15 END * interval '1 second' ORDER BY wake_at LIMIT 200) w)
) AS troubled) AS ranked WHERE place = 1 ORDER BY since LIMIT 60"""  # noqa: S608  (constants)


def given() -> dict[str, Any]:
    baskets = {*RESERVED, *(settings().baskets or ())}
    reviewed = (name for name in baskets if kind_of(name) in REVIEWED)
    patience = PATIENCE.total_seconds()
    stale = settings().stale_after
    return {"review": sorted(reviewed), "patience": patience, "grace": GRACE, "mode": settings().mode, "stale": stale}


def read(rows: Rows) -> list[Group]:
    """The most urgent first."""
    return urgent_first(
        [
            Group(Kind(row["kind"]), row["name"], row["count"], UUID(row["id"]), datetime.fromisoformat(row["since"]))
            for row in rows
        ]
    )


def told(groups: Sequence[Group]) -> list[Line]:
    """The verdicts on as many as are shown: one more question, and none if all is well."""
    shown = groups[:SHOWN]
    return attention(shown, {one.workflow.pk: one.seen for one in look([group.id for group in shown])} if shown else {})

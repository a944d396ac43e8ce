"""What needs attention, found through the few indexes that hold only troubled rows: what is well costs nothing.

Each kind is looked for on its own, grouped by name, with the facts of the one that has had it longest.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from workflows.baskets import RESERVED, kind_of
from workflows.claiming import PAUSED
from workflows.conf import settings

from ..attention import Found
from ..checking import REVIEWED
from ..late import DUE_NAMES, GRACE
from .together import Rows

MOST = 1000  # of a kind are looked at; a group larger than that is large enough
PATIENCE = 86400.0  # seconds after which somebody should have looked into a basket

_COLUMNS = """kind, name, count(*) OVER (PARTITION BY kind, name, grouped) AS count, id, key, since, version, about, worker, attempt, "of", kept, due,
    "limit", note, row_number() OVER (PARTITION BY kind, name, grouped ORDER BY since, id) AS place"""

ATTENTION = f"""SELECT kind, name, count, id, key, since, version, about, worker, attempt, "of", kept, due, "limit", note FROM (
SELECT {_COLUMNS} FROM (
    (SELECT 'orphan' AS kind, w.name, w.id, w.key, w.version, COALESCE(r.last_seen_at, r.detected_at) AS since, r.step AS about,
        r.worker_name AS worker, r.attempt, r.max_attempts AS "of", (r.plan ->> 'kept')::int AS kept, r.due_at AS due,
        NULL::float8 AS "limit", '' AS note, r.worker_name AS grouped
    FROM rekindle_recovery_recovery r JOIN rekindle_workflow w ON w.id = r.workflow_id
    WHERE r.outcome = 'pending' AND r.resumed_at IS NULL AND w.status = 'running' AND (w.worker_id IS NULL OR r.seq IS NULL) LIMIT {MOST})
    UNION ALL
    (SELECT 'orphan', w.name, w.id, w.key, w.version, COALESCE(k.last_seen_at, k.ended_at), '', k.host || ':' || k.pid, w.recovery_attempts + 1,
        w.max_recovery_attempts, NULL, NULL, NULL, COALESCE(NULLIF(p.mode, ''), NULLIF(everyone.mode, ''), %(mode)s), ''
    FROM rekindle_worker k JOIN rekindle_workflow w ON w.worker_id = k.id
    LEFT JOIN rekindle_policy p ON p.name = w.name LEFT JOIN rekindle_policy everyone ON everyone.name = '*'
    WHERE k.ended_at IS NOT NULL AND COALESCE(NULLIF(p.mode, ''), NULLIF(everyone.mode, ''), %(mode)s) <> 'enforce' LIMIT {MOST})
    UNION ALL
    (SELECT 'given up', name, id, key, version, finished_at, COALESCE(error -> 'open' ->> 0, ''), '', recovery_attempts, 0, NULL, NULL, NULL, '',
        COALESCE(error -> 'open' ->> 0, '')
    FROM (SELECT * FROM rekindle_workflow WHERE status = 'failed' ORDER BY finished_at DESC LIMIT {MOST}) w
    WHERE error ->> 'type' = 'RecoveryFailed' AND NOT error ? 'discarded')
    UNION ALL
    (SELECT 'beyond repair', w.name, w.id, w.key, w.version, r.settled_at, left(w.error ->> 'message', 200), '', 0, 0, NULL, NULL, NULL, '', ''
    FROM rekindle_recovery_recovery r JOIN rekindle_workflow w ON w.id = r.workflow_id
    WHERE r.settled_at > now() - interval '7 days' AND r.outcome = 'refused' AND w.pause_reason = 'suspended' AND w.error ->> 'type' = 'CorruptState' LIMIT {MOST})
    UNION ALL
    (SELECT 'blocked', name, id, key, version, COALESCE(running_at, due_at), left(error ->> 'message', 200), '', 0, 0, NULL, NULL, NULL, '',
        version::text
    FROM rekindle_workflow WHERE pause_reason = 'blocked' LIMIT {MOST})
    UNION ALL
    (SELECT CASE WHEN s.basket = ANY(%(review)s) THEN CASE WHEN s.error ->> 'type' = 'Crashed' THEN 'uncertain' ELSE 'held for review' END ELSE 'waiting' END,
        w.name, w.id, w.key, w.version, COALESCE(s.began_at, w.due_at), CASE WHEN s.basket = ANY(%(review)s) THEN s.name ELSE s.basket END, '', 0, 0,
        NULL, NULL, NULL, '', s.basket
    FROM (SELECT * FROM rekindle_step WHERE status = 'waiting' AND basket <> '' AND kind <> 'signal' LIMIT {MOST}) s
    JOIN rekindle_workflow w ON w.id = s.workflow_id
    WHERE s.basket = ANY(%(review)s) OR s.began_at < now() - %(patience)s * interval '1 second')
    UNION ALL
    (SELECT 'overrunning', w.name, w.id, w.key, w.version, w.running_at, '', '', 0, 0, NULL, NULL, COALESCE(p.run_limit, w.run_limit), '', ''
    FROM rekindle_workflow w LEFT JOIN rekindle_policy p ON p.name = w.name
    WHERE w.worker_id IS NOT NULL AND COALESCE(p.on_run_limit, 'flag') <> 'extend'
      AND w.running_at < now() - COALESCE(p.run_limit, w.run_limit) * interval '1 second' LIMIT {MOST})
    UNION ALL
    (WITH RECURSIVE {DUE_NAMES} SELECT CASE WHEN known THEN 'late' ELSE 'no code' END, d.name, w.id, w.key, w.version, w.wake_at, '', '', 0, 0, NULL, NULL, NULL,
        CASE WHEN NOT alive THEN 'no worker is alive' ELSE '' END, ''
    FROM (SELECT name, EXISTS (SELECT FROM rekindle_worker k WHERE k.ended_at IS NULL) AS alive,
            EXISTS (SELECT FROM rekindle_worker k WHERE k.ended_at IS NULL AND k.knows ? name) OR NOT EXISTS (SELECT FROM rekindle_worker k WHERE k.ended_at IS NULL) AS known
        FROM names WHERE name IS NOT NULL AND NOT {PAUSED.format(name="names.name")}) d
    CROSS JOIN generate_series(0, 4) AS level CROSS JOIN LATERAL (
        SELECT * FROM rekindle_workflow WHERE name = d.name AND priority = level AND pause_reason <> 'blocked' AND status <> 'running'
          AND wake_at <= now() - CASE WHEN d.known THEN %(grace)s ELSE 15 END * interval '1 second' ORDER BY wake_at LIMIT 200) w)
) AS troubled) AS ranked WHERE place = 1 ORDER BY since LIMIT 60"""  # noqa: S608  (constants)


def given() -> dict[str, Any]:
    baskets = {*RESERVED, *(settings().baskets or ())}
    reviewed = (name for name in baskets if kind_of(name) in REVIEWED)
    return {"review": sorted(reviewed), "patience": PATIENCE, "grace": GRACE, "mode": settings().mode}


def read(rows: Rows) -> list[Found]:
    return [
        Found(**row | {"id": UUID(row["id"]), "since": _moment(row["since"]), "due": _moment(row["due"])})
        for row in rows
    ]


def _moment(text: str | None) -> Any:
    return datetime.fromisoformat(text) if text else None

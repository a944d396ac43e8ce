"""The record of every rescue: written inside the take-over, settled from the diary once its outcome is known."""

import logging
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connections

from workflows.conf import settings
from workflows.takeover import MODE, PATIENT, Taken

from .models import Recovery
from .models.recovery import DetectedBy, Outcome, Reason

log = logging.getLogger("rekindle")

SETTLED_AT_ONCE = 2000  # rows looked at in one go

# What the mode or a policy says to leave is recorded once, and stays held.
LEFT = f"""
INSERT INTO rekindle_recovery_recovery (workflow_id, workflow_name, workflow_key, fence, finding, reason, detected_by, actor, note,
    worker, worker_name, step, in_step, attempt, max_attempts, plan, outcome, last_seen_at, due_at, seconds_to_detect)
SELECT w.id, w.name, COALESCE(w.key, ''), w.fence, CASE k.ended_why WHEN 'silent' THEN 'silent_worker' ELSE 'dead_worker' END,
    CASE k.ended_why WHEN 'silent' THEN 'stale_detection' ELSE 'infrastructure_restart' END, %(detected_by)s, '', '',
    k.id, k.host || ':' || k.pid, '', false, w.recovery_attempts + 1, w.max_recovery_attempts, '{{}}',
    CASE {MODE} WHEN 'enforce' THEN 'pending' ELSE 'observed' END, k.last_seen_at,
    CASE {MODE} WHEN 'enforce' THEN COALESCE(k.last_seen_at, k.ended_at) + COALESCE(p.stale_after, w.stale_after, 0) * interval '1 second' END,
    EXTRACT(EPOCH FROM now() - k.last_seen_at)
FROM rekindle_worker k JOIN rekindle_workflow w ON w.worker_id = k.id
LEFT JOIN rekindle_policy p ON p.name = w.name LEFT JOIN rekindle_policy everyone ON everyone.name = '*'
WHERE k.id = ANY(%(workers)s) AND k.ended_at IS NOT NULL AND {MODE} <> 'off' AND ({MODE} = 'observe' OR {PATIENT})
ON CONFLICT (workflow_id, fence) DO NOTHING
"""  # noqa: S608  (constants)

# Rescues whose outcome is open: the next some, or those of the workflows that are being taken over once more.
OPEN = "SELECT id, workflow_id, seq, resumed_at FROM rekindle_recovery_recovery WHERE outcome = 'pending'"
NEXT = f"{OPEN} AND id > %(after)s ORDER BY id LIMIT %(most)s"
OF_TAKEN = f"{OPEN} AND seq IS NOT NULL AND workflow_id = ANY(%(taken)s)"

# It runs again: the first claim after the take-over says when, and by whom.
RESUMED = """
UPDATE rekindle_recovery_recovery r SET resumed_at = e.at, seconds_to_resume = EXTRACT(EPOCH FROM e.at - r.detected_at)
FROM ({open}) AS open
CROSS JOIN LATERAL (SELECT at FROM rekindle_event
    WHERE workflow_id = open.workflow_id AND seq > open.seq AND type IN ('workflow.recovered', 'workflow.resumed')
    ORDER BY seq LIMIT 1) AS e
WHERE r.id = open.id AND open.resumed_at IS NULL
"""
# A step recorded under a later fence than the dead one's. To run again is none, nor to be let off an attempt by a block.
PROGRESS = """EXISTS (SELECT FROM rekindle_step s
    WHERE s.workflow_id = r.workflow_id AND s.fence > r.fence AND s.status = 'done' AND s.kind <> 'parallel')"""
FLAWED = "w.pause_reason = 'suspended' AND w.error ->> 'type' = 'CorruptState'"
# While it lives, progress counts once it is made where the worker died: the journal sets the attempts back there.
SETTLED = f"""
WITH open AS ({{open}}), known AS (
    UPDATE rekindle_recovery_recovery r SET settled_at = now(), outcome = CASE
        WHEN w.status = 'completed' OR {PROGRESS} THEN 'recovered'
        WHEN w.status = 'failed' THEN 'failed'
        WHEN {FLAWED} THEN 'refused'
        ELSE 'cancelled' END
    FROM open LEFT JOIN rekindle_workflow w ON w.id = open.workflow_id
    WHERE r.id = open.id AND r.outcome = 'pending'
      AND (w.id IS NULL OR w.finished_at IS NOT NULL OR {FLAWED} OR (w.recovery_attempts = 0 AND {PROGRESS}))
    RETURNING r.outcome, r.workflow_id, r.workflow_name, r.attempt, COALESCE(r.resumed_at, now()) - r.detected_at AS took
)
SELECT looked.*, known.* FROM (SELECT max(id), count(*) FROM open) AS looked LEFT JOIN known ON known.outcome = 'recovered'
"""  # noqa: S608  (constants)
# Their worker died: whatever they did in between, and nobody has looked at yet, counts for the rescue before.
DIED = f"""
UPDATE rekindle_recovery_recovery r SET settled_at = now(),
    outcome = CASE WHEN w.recovery_attempts = 0 AND {PROGRESS} THEN 'recovered' ELSE 'died_again' END
FROM ({OF_TAKEN}) AS open JOIN rekindle_workflow w ON w.id = open.workflow_id
WHERE r.id = open.id AND r.outcome = 'pending'
RETURNING r.outcome, r.workflow_id, r.workflow_name, r.attempt, COALESCE(r.resumed_at, now()) - r.detected_at AS took
"""  # noqa: S608  (constants)


def record(taken: list[Taken], about: dict[str, str]) -> None:
    """Called by the take-over in its own transaction. Whoever was rescued before, and got no further, has died again."""
    with connections[settings().database].cursor() as cursor:
        before = {"taken": [row["id"] for row in taken]}
        cursor.execute(RESUMED.replace("{open}", OF_TAKEN), before)
        cursor.execute(DIED, before)
        for outcome, *facts in cursor.fetchall():
            (_tell_recovered if outcome == "recovered" else _tell_failed)(*facts)
    changed = [
        "outcome",
        "seq",
        "attempt",
        "step",
        "in_step",
        "plan",
        "due_at",
        "settled_at",
        "detected_by",
        "actor",
        "note",
    ]
    Recovery.objects.using(settings().database).bulk_create(
        [_row(row, about) for row in taken],
        update_conflicts=True,
        unique_fields=["workflow_id", "fence"],
        update_fields=[*changed, "reason"],
    )


def note_left(workers: list[int], detected_by: str) -> int:
    """Record what is left as it is. Returns how many are new."""
    with connections[settings().database].cursor() as cursor:
        cursor.execute(LEFT, {"workers": workers, "detected_by": detected_by, "mode": settings().mode})
        return int(cursor.rowcount)


def settle(after: int = 0) -> int:
    """Write what came of rescues whose outcome is open, a bounded number. Returns where the next call may go on."""
    given = {"after": after, "most": SETTLED_AT_ONCE}
    with connections[settings().database].cursor() as cursor:
        cursor.execute(RESUMED.replace("{open}", NEXT), given)
        cursor.execute(SETTLED.replace("{open}", NEXT), given)
        (last, count, *first), *others = cursor.fetchall()
    for outcome, *facts in [first, *(other[2:] for other in others)]:
        if outcome:
            _tell_recovered(*facts)
    return last if count == SETTLED_AT_ONCE else 0


def _tell_recovered(workflow: UUID, name: str, attempt: int, took: timedelta) -> None:
    milliseconds = round(took.total_seconds() * 1000)
    facts = {"workflow": str(workflow), "workflow_name": name, "attempt": attempt, "durationMs": milliseconds}
    log.info("Recovery of workflow %s succeeded: it ran again after %s ms", workflow, milliseconds, extra=facts)


def _tell_failed(workflow: UUID, name: str, attempt: int, took: timedelta) -> None:
    facts = {"workflow": str(workflow), "workflow_name": name, "attempt": attempt}
    log.warning("Recovery of workflow %s failed: its worker died again", workflow, extra=facts)


def _row(row: Taken, about: dict[str, str]) -> Recovery:
    open_steps: list[dict[str, Any]] = row["open"]
    died_in = open_steps[0]["name"] if open_steps else (row["done"] or [""])[-1]
    ended = row["outcome"] != "released"
    stale = row["finding"] != "dead_worker"
    return Recovery(
        workflow_id=row["id"],
        workflow_name=row["name"],
        workflow_key=row["key"] or "",
        fence=row["fence"] - 1,
        seq=row["seq"],
        finding=row["finding"],
        reason=Reason.MANUAL if about["by"] else Reason.STALE_DETECTION if stale else Reason.INFRASTRUCTURE_RESTART,
        detected_by=about["detected_by"] or DetectedBy.OPERATOR,
        actor=about["by"][:200],
        note=about["reason"][:500],
        worker=row["worker"],
        worker_name=row["worker_name"],
        step=died_in,
        in_step=bool(open_steps),
        attempt=row["recovery_attempts"] + (row["outcome"] == "released"),
        max_attempts=row["max_recovery_attempts"],
        plan={"kept": len(row["done"]), "again": open_steps},
        outcome=Outcome.PENDING if not ended else row["outcome"],
        last_seen_at=row["last_seen_at"],
        detected_at=row["at"],
        due_at=row["wake_at"],
        settled_at=row["at"] if ended else None,
        seconds_to_detect=(row["at"] - row["last_seen_at"]).total_seconds() if row["last_seen_at"] else None,
    )

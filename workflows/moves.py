"""Every statement that changes a workflow's row. No other module writes `Workflow.status`.

An edge of the life of a workflow belongs to a verb; `MOVES` is the whole table. Starting, claiming and journalling are
plain SQL because they are the hot path; what operators do goes through `move()`. Whatever changes a row writes the
line in the diary that tells it, in the same statement or transaction.
"""

from typing import Any

from django.contrib.postgres.functions import TransactionNow
from django.db import connections

from . import signals
from .conf import settings
from .errors import Refused
from .models import Event, PauseReason, Status, Workflow

PENDING, QUEUED, RUNNING, PAUSED = Status.PENDING, Status.QUEUED, Status.RUNNING, Status.PAUSED
COMPLETED, FAILED, CANCELLED = Status.COMPLETED, Status.FAILED, Status.CANCELLED
ALIVE = {PENDING, QUEUED, RUNNING, PAUSED}

MOVES: dict[str, tuple[set[Status], Status]] = {
    # by the claim
    "start": ({PENDING, QUEUED}, RUNNING),
    "resume": ({PAUSED, QUEUED}, RUNNING),
    "recover": ({RUNNING}, RUNNING),  # its worker died
    # by the holder, through the journal
    "park": ({RUNNING}, PAUSED),
    "hand_back": ({RUNNING}, QUEUED),
    "complete": ({RUNNING}, COMPLETED),
    # by operators, and by whoever finds it
    "release": ({RUNNING}, RUNNING),  # an orphan: nobody holds it, somebody will
    "wake": ({PAUSED}, QUEUED),
    "suspend": (ALIVE, PAUSED),
    "fail": (ALIVE, FAILED),
    "cancel": (ALIVE, CANCELLED),
    "revive": ({FAILED, CANCELLED}, QUEUED),
    "adopt": ({QUEUED}, RUNNING),  # begun elsewhere: an orphan from the first
}

# The function is in the schema: a plan that the server keeps, however the caller's connection sends its statements.
INSERT = """
SELECT * FROM rekindle_start(%(rows)s, %(name)s, %(version)s, %(priority)s::smallint, %(persistence)s,
    %(max_recovery_attempts)s, %(stale_after)s, %(run_limit)s)
"""

# One probe of the due index per name and priority level, names taking turns: the nested loops stop as soon as the free
# slots are filled, and lock nothing that they do not take. The worker's own row is share-locked first: a sweep that
# ends this worker locks it for update, so no claim can slip in behind the sweep's back. `= ANY (ARRAY(…))`, here and in
# APPLY, keeps every plan from reading other rows than those, even one that was made while the table was empty.
CLAIM = """
WITH me AS MATERIALIZED (
    SELECT id FROM rekindle_worker WHERE id = %(worker)s AND ended_at IS NULL FOR KEY SHARE
), due AS MATERIALIZED (
    SELECT w.* FROM me
    CROSS JOIN json_to_recordset(%(known)s::json) AS n(name text, version int, fingerprint text)
    CROSS JOIN LATERAL (
        SELECT w.* FROM generate_series(0, 4) AS level
        CROSS JOIN LATERAL (
            SELECT id, status, running_at, wake_at FROM rekindle_workflow
            WHERE name = n.name AND priority = level AND wake_at <= now()
              AND version <= n.version AND refused_by <> n.fingerprint {alone}
            ORDER BY wake_at LIMIT %(share)s FOR NO KEY UPDATE SKIP LOCKED
        ) w LIMIT %(share)s
    ) w
    WHERE {obstacles}
    LIMIT %(slots)s
), claimed AS (
    UPDATE rekindle_workflow w SET status = 'running', pause_reason = '', worker_id = %(worker)s, wake_at = NULL, basket = '',
        fence = fence + 1, applied = 0, seq = seq + 1, running_at = now(),
        started_at = COALESCE(started_at, now()),
        lateness = CASE WHEN started_at IS NULL AND due.status <> 'running' THEN GREATEST(0, EXTRACT(EPOCH FROM now() - due_at)) ELSE lateness END,
        recovery_attempts = recovery_attempts + (due.status = 'running')::int,
        recoveries = recoveries + (due.status = 'running')::int
    FROM due WHERE w.id = due.id AND w.id = ANY (ARRAY(SELECT id FROM due))
    RETURNING w.id, w.name, w.version, w.key, w.generation, w.fence, w.seq, w.input, w.variables, w.ticket, w.persistence,
        w.recovery_attempts, w.max_recovery_attempts, w.suspects, w.progress, w.nudges, w.asked, w.created_at, w.due_at,
        w.lateness, EXTRACT(EPOCH FROM now() - due.wake_at)::float8 AS overdue, due.status AS before,
        due.running_at IS NOT NULL OR due.status = 'running' OR w.previous IS NOT NULL AS has_steps, now() AS db_now
), told AS (
    INSERT INTO rekindle_event (workflow_id, seq, type, fence, worker, path, step, attempt, seconds)
    SELECT id, seq, CASE WHEN before = 'running' THEN 'workflow.recovered' WHEN has_steps THEN 'workflow.resumed'
        ELSE 'workflow.started' END, fence, %(worker)s, '', '', NULLIF(recovery_attempts, 0),
        overdue FROM claimed
)
SELECT * FROM claimed
"""

# What was lost becomes due again, or ends: at its maximum it has failed, and a cancellation that was asked of
# the dead is carried out. One statement takes a bounded number, skips what somebody has locked, and tells each diary.
RELEASE = """
WITH lost AS MATERIALIZED (
    SELECT w.id, k.id AS worker, k.host || ':' || k.pid AS worker_name, k.last_seen_at,
        COALESCE(%(finding)s, CASE k.ended_why WHEN 'silent' THEN 'silent_worker' ELSE 'dead_worker' END) AS finding,
        CASE WHEN w.asked ->> 'what' = 'cancel' THEN 'cancelled'
            WHEN w.recovery_attempts >= w.max_recovery_attempts AND %(by)s = '' THEN 'gave_up' ELSE 'released' END AS outcome,
        CASE w.recovery_attempts WHEN 0 THEN 1 WHEN 1 THEN 300 ELSE 1200 END * %(delay)s::float8 AS delay
    FROM rekindle_worker k JOIN rekindle_workflow w ON w.worker_id = k.id
    LEFT JOIN rekindle_policy p ON p.name = w.name LEFT JOIN rekindle_policy everyone ON everyone.name = '*'
    WHERE {which}
    LIMIT %(most)s FOR NO KEY UPDATE OF w SKIP LOCKED
), stood AS MATERIALIZED (
    SELECT lost.id,
        COALESCE(jsonb_agg(s.name ORDER BY s.ended_at) FILTER (WHERE s.status = 'done' AND s.kind = 'step'), '[]') AS done,
        COALESCE(jsonb_agg(jsonb_build_object('path', s.path, 'position', s.position, 'name', s.name,
            'idempotent', s.idempotent, 'uncertain', true) ORDER BY s.path, s.position)
            FILTER (WHERE s.status = 'open' AND s.kind = 'step'), '[]') AS open
    FROM lost LEFT JOIN rekindle_step s ON s.workflow_id = lost.id GROUP BY lost.id
), moved AS (
    UPDATE rekindle_workflow w SET
        status = CASE lost.outcome WHEN 'released' THEN 'running' WHEN 'gave_up' THEN 'failed' ELSE 'cancelled' END,
        worker_id = NULL, fence = w.fence + 1, seq = w.seq + 1, pause_reason = '', basket = '',
        wake_at = CASE WHEN lost.outcome = 'released' THEN now() + lost.delay * interval '1 second' END,
        finished_at = CASE WHEN lost.outcome <> 'released' THEN now() END,
        asked = CASE WHEN lost.outcome = 'released' THEN w.asked END,
        suspects = CASE WHEN stood.open = '[]' THEN w.suspects
            ELSE (SELECT jsonb_agg((o ->> 'path') || (o ->> 'position')) FROM jsonb_array_elements(stood.open) AS o) END,
        error = CASE WHEN lost.outcome = 'gave_up' THEN jsonb_build_object('type', 'RecoveryFailed',
            'message', 'Workflow recovery failed after ' || w.recovery_attempts || ' attempts',
            'open', jsonb_path_query_array(stood.open, '$[*].name'), 'completed_steps', stood.done) ELSE w.error END
    FROM lost JOIN stood ON stood.id = lost.id WHERE w.id = lost.id
    RETURNING w.id, w.name, w.key, w.fence, w.seq, w.wake_at, w.recovery_attempts, w.max_recovery_attempts,
        lost.worker, lost.worker_name, lost.last_seen_at, lost.finding, lost.outcome, lost.delay, stood.done, stood.open, now() AS at
), told AS (
    INSERT INTO rekindle_event (workflow_id, seq, type, fence, worker, path, step, data)
    SELECT id, seq, CASE outcome WHEN 'released' THEN 'workflow.orphaned' WHEN 'gave_up' THEN 'workflow.failed'
        ELSE 'workflow.cancelled' END, fence, worker, '', COALESCE(open #>> '{0,name}', ''),
        jsonb_strip_nulls(jsonb_build_object('worker', worker_name, 'open', jsonb_path_query_array(open, '$[*].name'),
            'detected_by', %(detected_by)s::text, 'finding', finding, 'by', NULLIF(%(by)s, ''),
            'reason', NULLIF(%(reason)s, ''), 'delay', CASE WHEN outcome = 'released' THEN delay END))
    FROM moved
)
SELECT * FROM moved
"""

# A claim that was committed, but of which its worker never heard: it gives back what it does not know it holds.
GIVE_BACK = """
WITH unheard AS MATERIALIZED (
    SELECT id FROM rekindle_workflow WHERE worker_id = %(worker)s AND id <> ALL(%(known)s)
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
), moved AS (
    UPDATE rekindle_workflow w SET status = 'queued', worker_id = NULL, wake_at = now(), fence = w.fence + 1, seq = w.seq + 1
    FROM unheard WHERE w.id = unheard.id RETURNING w.id, w.seq, w.fence
)
INSERT INTO rekindle_event (workflow_id, seq, type, fence, worker, path, step, data)
SELECT id, seq, 'workflow.handed_back', fence, %(worker)s, '', '', '{"reason": "its worker did not hear of the claim"}' FROM moved
"""

# The journal's one statement. Rows are locked in the order of their ids, fence and worker compared in that locking
# read; a row somebody else has locked waits for the next batch. Each workflow appears once, its events numbered from
# its own last one. The sums at the end abort the statement if a single row asked for was not written: a step that
# has ended is never written again, whoever ended it.
# A pause that was withdrawn, or became a cancellation, before its holder carried it out is due at once.
APPLY = """
WITH mine AS MATERIALIZED (
    SELECT a.*, w.seq FROM (SELECT * FROM json_to_recordset(%(rows)s::json) AS t(
        id uuid, fence bigint, n int, steps int, events int, raises int, advanced bool, variables text, progress text,
        ticket text, status text, pause_reason text, wake_in float8, wake_at timestamptz, basket text, nudges int,
        output text, error text, refused_by text) ORDER BY id) AS a
    CROSS JOIN LATERAL (  -- one probe each by its id: `=` would tempt the planner to read all that the worker holds
        SELECT seq FROM rekindle_workflow w
        WHERE w.id = a.id AND w.fence = a.fence AND w.worker_id IS NOT DISTINCT FROM %(worker)s
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS w
), stepped AS (
    INSERT INTO rekindle_step AS old (
        workflow_id, path, position, name, occurrence, kind, status, response, attempt, failures, on_crash, idempotent,
        fence, began_at, ended_at, wake_at, basket, result, error)
    SELECT s.id, COALESCE(s.path, '.'), s.position, s.name, COALESCE(s.occurrence, 1), COALESCE(s.kind, 'step'), s.status,
        COALESCE(s.response, ''), s.attempt, COALESCE(s.failures, 0), COALESCE(s.on_crash, 'rerun'),
        COALESCE(s.idempotent, false), mine.fence, clock_timestamp() - s.seconds * interval '1 second',
        CASE WHEN s.status IN ('done', 'failed') THEN clock_timestamp() END,
        COALESCE(s.wake_at, now() + s.wake_in * interval '1 second'), COALESCE(s.basket, ''), s.result::jsonb, s.error::jsonb
    FROM json_to_recordset(%(steps)s::json) AS s(
        id uuid, path text, position int, name text, occurrence int, kind text, status text, response text, attempt int,
        failures int, on_crash text, idempotent bool, seconds float8, wake_in float8, wake_at timestamptz, basket text,
        result text, error text)
    CROSS JOIN LATERAL (SELECT fence FROM mine WHERE id = s.id LIMIT 1) AS mine  -- in the order in which they ended
    ON CONFLICT (workflow_id, path, position) DO UPDATE SET
        status = EXCLUDED.status, response = EXCLUDED.response, attempt = EXCLUDED.attempt,
        failures = EXCLUDED.failures, fence = EXCLUDED.fence, began_at = EXCLUDED.began_at, ended_at = EXCLUDED.ended_at,
        wake_at = CASE WHEN EXCLUDED.status = 'waiting' THEN EXCLUDED.wake_at ELSE old.wake_at END,
        basket = EXCLUDED.basket, result = EXCLUDED.result, error = EXCLUDED.error
    WHERE old.status NOT IN ('done', 'failed')
    RETURNING 1
), told AS (
    INSERT INTO rekindle_event (workflow_id, seq, type, fence, worker, path, step, attempt, seconds, data)
    SELECT e.id, mine.seq + e.k, e.type, mine.fence, %(worker)s, COALESCE(e.path, ''), COALESCE(e.step, ''), e.attempt,
        e.seconds, e.data::jsonb
    FROM json_to_recordset(%(events)s::json) AS e(
        id uuid, k int, type text, path text, step text, attempt int, seconds float8, data text)
    CROSS JOIN LATERAL (SELECT fence, seq FROM mine WHERE id = e.id LIMIT 1) AS mine
    RETURNING 1
), moved AS (
    UPDATE rekindle_workflow w SET
        seq = w.seq + a.events, applied = GREATEST(w.applied, a.n), fence = w.fence + COALESCE(a.raises, 0),
        variables = CASE WHEN a.variables IS NULL THEN w.variables ELSE w.variables || a.variables::jsonb END,
        progress = COALESCE(a.progress::jsonb, w.progress),
        ticket = COALESCE(a.ticket, w.ticket),
        refused_by = CASE WHEN a.advanced THEN '' ELSE COALESCE(a.refused_by, w.refused_by) END,
        recovery_attempts = CASE WHEN a.advanced THEN 0 ELSE w.recovery_attempts END,
        suspects = CASE WHEN a.advanced THEN NULL ELSE w.suspects END,
        status = COALESCE(a.status, w.status),
        worker_id = CASE WHEN a.status IS NULL THEN w.worker_id END,
        pause_reason = COALESCE(a.pause_reason, ''),
        basket = COALESCE(a.basket, ''),
        wake_at = CASE
            WHEN a.pause_reason = 'suspended' THEN  -- unless it is put aside for its flaw: if the pause is still asked for
                CASE WHEN a.error IS NOT NULL OR w.asked ->> 'what' = 'pause' THEN NULL ELSE now() END
            WHEN a.status IN ('paused', 'queued') THEN CASE WHEN w.nudges > a.nudges THEN now()
                ELSE COALESCE(a.wake_at, now() + a.wake_in * interval '1 second') END END,
        asked = CASE WHEN a.status IN ('completed', 'failed', 'cancelled')
            OR a.pause_reason = 'suspended' AND w.asked ->> 'what' = 'pause' THEN NULL ELSE w.asked END,
        finished_at = CASE WHEN a.status IN ('completed', 'failed', 'cancelled') THEN now() END,
        output = a.output::jsonb, error = a.error::jsonb
    FROM mine a WHERE w.id = a.id AND w.id = ANY (ARRAY(SELECT id FROM mine))
    RETURNING w.id, w.nudges, w.asked, a.steps, a.events
)
SELECT moved.id, moved.nudges, moved.asked FROM (
    SELECT CASE WHEN (SELECT count(*) FROM moved) = (SELECT count(*) FROM mine)
        AND (SELECT count(*) FROM stepped) = (SELECT COALESCE(sum(steps), 0) FROM moved)
        AND (SELECT count(*) FROM told) = (SELECT COALESCE(sum(events), 0) FROM moved)
        THEN true ELSE ('rows were lost in a batch of ' || (SELECT count(*) FROM mine))::bool END AS whole
) AS sums LEFT JOIN moved ON sums.whole
"""

# The same, and the signals it takes from the inbox. Apart, because most batches take none.
APPLY_WITH_SIGNALS = APPLY.replace(
    "), moved AS (",
    """), taken AS (
    UPDATE rekindle_signal SET consumed_by = t.consumed_by
    FROM json_to_recordset(%(signals)s::json) AS t(id bigint, workflow uuid, consumed_by text) JOIN mine ON mine.id = t.workflow
    WHERE rekindle_signal.id = t.id
), moved AS (""",
)


def move(
    workflow: Workflow, verb: str, *, event: str, by: str = "", data: dict[str, Any] | None = None, **changes: Any
) -> Workflow:
    """Carry out an operator's verb on a row the caller has locked. Raises the fence: no holder can write after it."""
    allowed, target = MOVES[verb]
    if workflow.status not in allowed:
        raise Refused(f"Cannot {verb} {workflow} ({workflow.status}): only {', '.join(sorted(allowed))} can.")
    changes = {"pause_reason": "", "wake_at": None, "basket": "", "worker": None, "finished_at": None} | changes
    for name, value in (changes | {"status": target}).items():
        setattr(workflow, name, value)
    workflow.fence += 1
    workflow.seq += 1
    workflow.save(update_fields=[*changes, "status", "fence", "seq"])
    note = {key: value for key, value in {"by": by, **(data or {})}.items() if value not in ("", None)}
    Event.objects.create(workflow=workflow, seq=workflow.seq, type=event, fence=workflow.fence, data=note or None)
    if workflow.is_finished:
        signals.tell_finished(workflow.pk, workflow.name, workflow.key, workflow.status)
    return workflow


def tell(workflow: Workflow, event: str, *, data: dict[str, Any] | None = None, **changes: Any) -> None:
    """Write a line in the diary of a row the caller has locked, without a move."""
    workflow.seq += 1
    for name, value in changes.items():
        setattr(workflow, name, value)
    workflow.save(update_fields=["seq", *changes])
    Event.objects.create(workflow=workflow, seq=workflow.seq, type=event, fence=workflow.fence, data=data)


# What a new generation has in common with the one before it. Its lane and its place in it are not inherited.
INHERITED = (
    "name",
    "key",
    "priority",
    "input",
    "search",
    "persistence",
    "max_recovery_attempts",
    "stale_after",
    "run_limit",
)


def succeed(old: Workflow, *, note: dict[str, Any], basket: str = "", **more: Any) -> Workflow:
    """Write the generation after a finished one, which the caller has locked and which is frozen from here on.

    It is due at once or, with a basket, waits there for a person. Either diary names the other.
    """
    inherited = {name: getattr(old, name) for name in INHERITED}
    waits = {"status": PAUSED, "pause_reason": PauseReason.PEND, "basket": basket}
    state = waits if basket else {"status": QUEUED, "wake_at": TransactionNow()}
    new = Workflow(**inherited, generation=old.generation + 1, previous=old.pk, **state, **more)
    new.save(force_insert=True)
    note = {key: value for key, value in note.items() if value not in ("", None)}
    first = {"previous": str(old.pk), **note}
    Event.objects.create(workflow=new, seq=1, type=f"workflow.{new.status}", data=first)
    tell(old, "workflow.reopened", data={"next": str(new.pk), **note})
    return new


def cursor() -> Any:
    return connections[settings().database].cursor()


__all__ = [
    "APPLY",
    "APPLY_WITH_SIGNALS",
    "CLAIM",
    "GIVE_BACK",
    "INSERT",
    "MOVES",
    "RELEASE",
    "PauseReason",
    "move",
    "succeed",
    "tell",
]

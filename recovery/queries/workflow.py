"""One workflow, with everything a verdict and a plan need, in one question to the database; and what its tabs show.

Polls have room for two questions beside those for session and permissions. So steps, rescues, policies and the last
word of the diary come as JSON with the row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import (
    BooleanField,
    F,
    Field,
    IntegerField,
    JSONField,
    OuterRef,
    QuerySet,
    Subquery,
    TextField,
    Value,
)
from django.db.models.expressions import RawSQL
from django.db.models.functions import Concat, Now
from django.utils.dateparse import parse_datetime

from workflows.claiming import obstacle
from workflows.conf import settings
from workflows.liveness import LOCKED
from workflows.models import Event, Policy, Step, Worker, Workflow

from ..lookout import HEARD
from ..models import AuditEntry, Note, Recovery
from ..verdict import Seen, Told
from .notes import ON_WORKFLOW

EVENTS = 100  # on a page of the diary
DRAWN = 6000  # events read for a timeline
AUDITED = 100
RESCUES = 100

OBSTACLE = f"CASE WHEN rekindle_workflow.wake_at <= now() THEN {obstacle('rekindle_workflow')} END"
# A free lock says nothing behind a pooler, or before a worker had time to come back to a new server.
LOCK = f"""rekindle_workflow.worker_id IS NULL OR rekindle_worker.pooled OR {LOCKED.format(worker="rekindle_workflow.worker_id")}
    OR now() - pg_postmaster_start_time() < %s * interval '1 second'"""
ALIVE = f"(SELECT count(*)::int FROM rekindle_worker k WHERE {HEARD.format(worker='k', stale_after='%s')})"  # noqa: S608
# Without results, which may be large; of errors what a sentence needs.
STEPS = """(SELECT jsonb_agg(to_jsonb(s) ORDER BY s.path, s.position) FROM (
    SELECT id, path, position, name, occurrence, kind, status, response, attempt, failures, on_crash, idempotent, fence,
        began_at, ended_at, wake_at, basket, CASE WHEN kind = 'parallel' AND status = 'open' THEN result END AS result,
        CASE WHEN error IS NOT NULL THEN jsonb_build_object('type', error ->> 'type', 'message', left(error ->> 'message', 400)) END AS error
    FROM rekindle_step WHERE workflow_id = rekindle_workflow.id) s)"""
RESCUED = f"""(SELECT jsonb_agg(to_jsonb(r) ORDER BY r.id DESC) FROM (
    SELECT * FROM rekindle_recovery_recovery WHERE workflow_id = rekindle_workflow.id ORDER BY id DESC LIMIT {RESCUES}) r)"""  # noqa: S608
POLICIES = "(SELECT jsonb_agg(to_jsonb(p)) FROM rekindle_policy p WHERE p.name IN (rekindle_workflow.name, '*'))"
TOLD = """(SELECT jsonb_build_object('type', e.type, 'at', e.at, 'data', COALESCE(e.data, '{}'))
    FROM rekindle_event e WHERE e.workflow_id = rekindle_workflow.id AND e.path = '' AND e.type IN (
        'workflow.suspended', 'workflow.cancelled', 'workflow.failed', 'workflow.handed_back', 'workflow.paused', 'workflow.adopted')
    ORDER BY e.seq DESC LIMIT 1)"""
NEXT = """(SELECT e.data ->> 'next' FROM rekindle_event e WHERE e.workflow_id = rekindle_workflow.id
    AND e.type = 'workflow.reopened' AND rekindle_workflow.finished_at IS NOT NULL ORDER BY e.seq DESC LIMIT 1)"""
ACTS = "(SELECT count(*)::int FROM rekindle_recovery_auditentry a WHERE a.subject_id = rekindle_workflow.id::text)"
# The chosen step with its payload; if none is chosen, what runs, what waits or failed, what ended last.
CHOSEN = """(SELECT jsonb_build_object('path', s.path, 'position', s.position, 'result', s.result, 'error', s.error)
    FROM rekindle_step s WHERE s.workflow_id = rekindle_workflow.id AND s.kind <> 'value'
    ORDER BY (s.path = %s AND s.position = %s) DESC, s.kind = 'parallel',
        CASE s.status WHEN 'open' THEN 0 WHEN 'again' THEN 0 WHEN 'waiting' THEN 1 WHEN 'failed' THEN 1 ELSE 2 END,
        COALESCE(s.ended_at, s.began_at) DESC NULLS LAST LIMIT 1)"""


@dataclass(frozen=True, slots=True)
class Look:
    """One workflow as it was at one moment."""

    workflow: Workflow
    seen: Seen
    rescues: list[Recovery]
    acts: int  # entries of the audit
    notes: list[Note]
    chosen: dict[str, Any] = field(default_factory=dict)

    @property
    def steps(self) -> Sequence[Step]:
        return self.seen.steps

    @property
    def chosen_key(self) -> str:
        return f"{self.chosen['path']}:{self.chosen['position']}" if self.chosen else ""


def look(pks: Sequence[UUID], *, chosen: tuple[str, int] | None = None, payload: bool = False) -> list[Look]:
    """In the order of their ids; what is gone is left out."""
    rows = (
        Workflow.objects.using(settings().database)
        .filter(pk__in=pks)
        .select_related("worker")
        .annotate(
            now=Now(),
            obstacle=_sql(OBSTACLE, TextField()),
            locked=_sql(LOCK, BooleanField(), settings().restart_grace),
            live_workers=_sql(ALIVE, IntegerField(), settings().stale_after),
            step_rows=_sql(STEPS, JSONField()),
            rescue_rows=_sql(RESCUED, JSONField()),
            policy_rows=_sql(POLICIES, JSONField()),
            told=_sql(TOLD, JSONField()),
            next=_sql(NEXT, TextField()),
            act_count=_sql(ACTS, IntegerField()),
            note_rows=_sql(ON_WORKFLOW, JSONField()),
        )
        .order_by("pk")
    )
    if payload:
        rows = rows.annotate(chosen=_sql(CHOSEN, JSONField(), *(chosen or ("", -1))))
    return [_look(row) for row in rows]


def one(pk: UUID, *, chosen: tuple[str, int] | None = None, payload: bool = False) -> Look | None:
    return next(iter(look([pk], chosen=chosen, payload=payload)), None)


def diary(workflow: Workflow) -> list[Any]:
    """What a timeline is drawn of, with the names of the workers; up to what the row knew of when it was read."""
    return list(
        _events(workflow.pk)
        .filter(seq__lte=workflow.seq)
        .exclude(type__in=["value.recorded", "variables.set"])
        .order_by("seq")[:DRAWN]
    )


def page_of_diary(pk: UUID, before: int | None) -> tuple[list[Any], int | None]:
    """The newest events, or those before a number; and where the next page begins."""
    rows = _events(pk).order_by("-seq")
    found = list((rows.filter(seq__lt=before) if before else rows)[: EVENTS + 1])
    return found[:EVENTS], found[EVENTS - 1].seq if len(found) > EVENTS else None


def audit(pk: UUID) -> list[AuditEntry]:
    rows = AuditEntry.objects.using(settings().database).filter(subject_id=str(pk), subject="workflow")
    return list(rows.order_by("-id")[:AUDITED])


def payload(pk: UUID, what: str, step: tuple[str, int] | None) -> Any:
    """One stored value. LookupError if there is none."""
    database = settings().database
    if step:
        rows: QuerySet[Any] = Step.objects.using(database).filter(workflow=pk, path=step[0], position=step[1])
    else:
        rows = Workflow.objects.using(database).filter(pk=pk)
    found = list(rows.values_list(what, flat=True)[:1])
    if not found:
        raise LookupError(f"There is no {what} of {pk}; retention may have removed it.")
    return found[0]


def was_there(pk: UUID) -> bool:
    """Whether what is kept longer than workflows knows of it."""
    database = settings().database
    acted = AuditEntry.objects.using(database).filter(subject_id=str(pk)).exclude(subject_name="").exists()
    return acted or Recovery.objects.using(database).filter(workflow_id=pk).exists()


# -- parts ------------------------------------------------------------------------------------------------------------


def _events(pk: UUID) -> QuerySet[Any]:
    names = Worker.objects.filter(pk=OuterRef("worker")).values(
        name=Concat(F("host"), Value(":"), F("pid"), output_field=TextField())
    )
    return Event.objects.using(settings().database).filter(workflow=pk).annotate(worker_name=Subquery(names[:1]))


def _sql(constant: str, field: "Field[Any, Any]", *given: Any) -> RawSQL:
    return RawSQL(constant, given, field)  # noqa: S611  (what people give is a parameter)


def _look(row: Any) -> Look:
    policies = {each["name"]: _build(Policy, each) for each in row.policy_rows or ()}
    policy, everyone = policies.get(row.name), policies.get("*")
    rescues = [_build(Recovery, each) for each in row.rescue_rows or ()]
    told = row.told and Told(row.told["type"], _moment(row.told["at"]), row.told["data"])
    seen = Seen(
        workflow=row,
        now=row.now,
        steps=[_build(Step, each) for each in row.step_rows or ()],
        locked=bool(row.locked),
        obstacle=row.obstacle,
        live_workers=row.live_workers,
        mode=(policy and policy.mode) or (everyone and everyone.mode) or settings().mode,
        policy=policy,
        rescue=rescues[0] if rescues else None,
        told=told or None,
        successor=UUID(row.next) if row.next else None,
    )
    notes = [_build(Note, each | {"at": _moment(each["at"])}) for each in row.note_rows or ()]
    return Look(row, seen, rescues, row.act_count, notes, getattr(row, "chosen", None) or {})


def _build(model: Any, row: dict[str, Any]) -> Any:
    return model(**{name: _moment(value) if name.endswith("_at") and value else value for name, value in row.items()})


def _moment(text: str) -> datetime:
    at = parse_datetime(text)
    assert at
    return at

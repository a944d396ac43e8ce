"""The record of who did what. Written in the transaction of the act; a refused act is recorded after it was rolled back.

What people type is hostile text: what could not be stored, or would turn a page around, is left out.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from django.db.models import Model
from django.forms.models import model_to_dict

from workflows.commands.table import clean
from workflows.conf import settings
from workflows.models import Workflow

from .models import AuditEntry, Batch


class Record(Protocol):
    """Whatever has a number, and a name as text."""

    @property
    def pk(self) -> Any: ...


TOLD = ("status", "pause_reason", "basket", "worker_id", "fence", "recovery_attempts", "generation")


def note(
    act: str,
    workflow: Workflow,
    *,
    by: str,
    via: str,
    reason: str = "",
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    refused: str = "",
    token: str = "",
) -> AuditEntry:
    return _enter(act, "workflow", workflow, by, via, reason, before, after, refused, token)


def acted_with(workflow: Workflow, token: str) -> Workflow | None:
    """What came of the act that a form with this token has done, if it has: perhaps a new generation."""
    if not token:
        return None
    entries = AuditEntry.objects.using(settings().database).filter(subject_id=str(workflow.pk), token=token, refused="")
    entry = entries.first()
    if entry is None:
        return None
    return (
        Workflow.objects.using(settings().database).filter(pk=(entry.after or {"id": workflow.pk})["id"]).first()
        or workflow
    )


def note_batch(
    act: str,
    batch: Batch,
    *,
    by: str,
    via: str,
    reason: str = "",
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> AuditEntry:
    """That it began or was stopped; what it does to each workflow is entered there."""
    return _enter(act, "batch", batch, by, via, reason, before, after)


def note_change(
    act: str,
    subject: str,
    record: Record,
    *,
    by: str,
    via: str,
    before: Any = None,
    after: Any = None,
    reason: str = "",
    refused: str = "",
) -> AuditEntry:
    """Of a policy, a rule, a view, a note or a worker: only what differs."""
    old, new = before or {}, after or {}
    names = [name for name in old | new if old.get(name) != new.get(name)]
    reason = reason or str(getattr(record, "reason", ""))
    return _enter(
        act,
        subject,
        record,
        by,
        via,
        reason,
        {name: old[name] for name in names if name in old} or None,
        {name: new[name] for name in names if name in new} or None,
        refused,
    )


def state_of(workflow: Workflow, variables: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What an act may change of a workflow; of its variables only those it was given."""
    state = {name: getattr(workflow, name) for name in TOLD}
    state["id"] = str(workflow.pk)
    state["wake_at"] = workflow.wake_at.isoformat() if workflow.wake_at else None
    if workflow.asked:
        state["asked"] = workflow.asked["what"]
    if variables:
        state["variables"] = {name: workflow.variables.get(name) for name in variables}
    return state


def fields_of(record: Model) -> dict[str, Any]:
    """What people may change of a policy or a rule."""
    kept = ("changed_at", "changed_by", "id")
    return {name: value for name, value in model_to_dict(record).items() if name not in kept}


def _enter(
    act: str,
    subject: str,
    record: Record,
    by: str,
    via: str,
    reason: str,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
    refused: str = "",
    token: str = "",
) -> AuditEntry:
    return AuditEntry.objects.using(settings().database).create(
        actor=clean(by, 200),
        via=via,
        act=act,
        subject=subject,
        subject_id=str(record.pk),
        subject_name=clean(record, 320),
        reason=clean(reason, 500),
        before=before,
        after=after,
        refused=clean(refused, 500),
        token=token,
    )

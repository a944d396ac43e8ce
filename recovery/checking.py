"""What recovery thinks of a workflow, in the words of the seeds. Looking changes nothing.

`check_of` decides without the database; `check` reads what it needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from workflows.baskets import kind_of
from workflows.commands.table import moment
from workflows.conf import settings
from workflows.definitions import discover
from workflows.integrity import flaw
from workflows.models import PauseReason, Policy, Status, Step, Worker, Workflow

from .lookout import sign_of

REVIEWED = ("hold", "error")  # kinds of baskets in which something waits because it went wrong


class Word(StrEnum):
    STALE_RUNNING = "stale_running"  # held by a worker that is dead
    ORPHANED_ALARM = "orphaned_alarm"  # running, held by nobody: its alarm is the recovery
    PENDING_RESUME = "pending_resume"  # its time has come, the next free worker takes it
    NOT_NEEDED = "not_needed"
    ALREADY_TERMINAL = "already_terminal"
    MAX_ATTEMPTS_EXCEEDED = "max_attempts_exceeded"
    NO_JOB = "no_job"
    DEFINITION_MISSING = "definition_missing"
    BLOCKED = "blocked"
    HELD_FOR_REVIEW = "held_for_review"
    CORRUPT_STATE = "corrupt_state"


RECOVERABLE = (Word.STALE_RUNNING, Word.ORPHANED_ALARM, Word.MAX_ATTEMPTS_EXCEEDED)  # by an operator


@dataclass(frozen=True, slots=True)
class Check:
    """`scheduled`: it will come back without anybody's help. `why` completes "… because" and says what to do."""

    scheduled: bool
    reason: Word
    why: str
    status: str = ""
    stale_for: float | None = None  # seconds since the last sign of life
    requires_manual_intervention: bool = False  # C40

    def as_json(self) -> dict[str, Any]:
        return {
            "scheduled": self.scheduled,
            "reason": str(self.reason),
            "stale_for": self.stale_for,
            "status": self.status,
            "requires_manual_intervention": self.requires_manual_intervention,
            "why": self.why,
        }


def check(workflow_id: UUID) -> Check:
    """Look at one workflow as it is now."""
    rows = Workflow.objects.using(settings().database).select_related("worker").annotate(now=Now())
    workflow = rows.filter(pk=workflow_id).first()
    if workflow is None:
        return Check(False, Word.NO_JOB, f"there is no workflow {workflow_id}; retention may have removed it")
    sign = sign_of(workflow.worker.pk) if workflow.worker else None
    return check_of(
        workflow,
        workflow.worker,
        list(Step.objects.using(settings().database).filter(workflow=workflow)),
        workflow.now,
        locked=sign is None or sign.may_be_locked,
        known=is_known(workflow),
        mode=mode_of(workflow.name),
    )


def check_of(
    workflow: Workflow,
    worker: Worker | None,
    steps: Sequence[Step],
    now: datetime,
    *,
    locked: bool = True,
    known: bool = True,
    mode: str = "enforce",
) -> Check:
    status = str(workflow.status)
    if workflow.is_finished:
        return _ended(workflow)
    if broken := flaw(workflow.input, workflow.variables, workflow.ticket, steps):
        why = (
            f"its state cannot be repaired: {broken}; restore it from a backup, or fail it and reopen it with a ticket"
        )
        return Check(False, Word.CORRUPT_STATE, why, status, requires_manual_intervention=True)
    if worker:
        return _held(workflow, worker, steps, now, locked, mode)
    if workflow.pause_reason == PauseReason.BLOCKED:
        message = (workflow.error or {}).get("message", "the code does not fit what is recorded")
        why = f"it is blocked: {message}; it goes on by itself once a worker has code that fits, or fail it"
        return Check(False, Word.BLOCKED, why, status, requires_manual_intervention=True)
    if not known:
        why = (
            f"no code here or in a live worker knows {workflow.name} version {workflow.version}; deploy it, or fail it"
        )
        return Check(False, Word.DEFINITION_MISSING, why, status, requires_manual_intervention=True)
    if status == Status.RUNNING:
        stale = (now - workflow.running_at).total_seconds() if workflow.running_at else None
        assert workflow.wake_at
        why = f"its worker died; recovery {workflow.recovery_attempts + 1} of {workflow.max_recovery_attempts} "
        why += "is due now" if workflow.wake_at <= now else f"is due at {moment(workflow.wake_at)}"
        return Check(True, Word.ORPHANED_ALARM, why, status, stale, _stops_at_review(steps))
    return _waiting(workflow, steps, now)


def is_known(workflow: Workflow) -> bool:
    """Whether this code, or that of a live worker, can run it."""
    here = discover().get(workflow.name)
    if here and here.version >= workflow.version:
        return True
    live = Worker.objects.using(settings().database).filter(ended_at=None, knows__has_key=workflow.name)
    return any(knows[workflow.name][0] >= workflow.version for knows in live.values_list("knows", flat=True))


def mode_of(name: str) -> str:
    """enforce, observe or off: the word of its policy, else of everybody's, else the setting."""
    rows = Policy.objects.using(settings().database).filter(name__in=[name, "*"]).exclude(mode="")
    modes = dict(rows.values_list("name", "mode"))
    return modes.get(name) or modes.get("*") or settings().mode


def uncertain(steps: Sequence[Step]) -> list[Step]:
    """Begun, end unknown: a worker died in them, or would have if it died now."""
    return [step for step in steps if step.status == Step.Status.OPEN and step.kind == Step.Kind.STEP and step.attempt]


# -- parts ----------------------------------------------------------------------------------------------------------


def _ended(workflow: Workflow) -> Check:
    why = {
        Status.COMPLETED: "it has completed",
        Status.CANCELLED: "it was cancelled; revive it to go on where it stopped",
        Status.FAILED: "it has failed; revive it, or discard it",
    }[Status(workflow.status)]
    open_letter = workflow.status == Status.FAILED and "discarded" not in (workflow.error or {})
    status = str(workflow.status)
    return Check(False, Word.ALREADY_TERMINAL, why, status, requires_manual_intervention=open_letter)


def _held(workflow: Workflow, worker: Worker, steps: Sequence[Step], now: datetime, locked: bool, mode: str) -> Check:
    silence = max(0.0, (now - worker.heartbeat_at).total_seconds())
    status = str(workflow.status)
    if worker.ended_at is None and locked and silence < settings().stale_after:
        why = f"its worker {worker} is alive, last heard {silence:.0f} s ago"
        return Check(False, Word.NOT_NEEDED, why, status)
    if workflow.recovery_attempts >= workflow.max_recovery_attempts:
        why = (
            f"it was recovered {workflow.recovery_attempts} of {workflow.max_recovery_attempts} times without progress, "
            "and nobody but an operator tries once more"
        )
        return Check(False, Word.MAX_ATTEMPTS_EXCEEDED, why, status, silence, requires_manual_intervention=True)
    why = f"its worker {worker} is dead, last heard {silence:.0f} s ago"
    if mode != "enforce":
        why += f"; the mode is {mode}, so it waits until somebody recovers it"
    return Check(mode == "enforce", Word.STALE_RUNNING, why, status, silence, _stops_at_review(steps))


def _waiting(workflow: Workflow, steps: Sequence[Step], now: datetime) -> Check:
    status = str(workflow.status)
    for step in steps:
        if step.status == Step.Status.WAITING and kind_of(step.basket) in REVIEWED:
            why = f"{step.name} is held for review in {step.basket}; resume it, with --done if its work was done"
            return Check(False, Word.HELD_FOR_REVIEW, why, status, requires_manual_intervention=True)
    if workflow.wake_at and workflow.wake_at <= now:
        return Check(True, Word.PENDING_RESUME, "it is due, and the next free worker takes it", status)
    if workflow.wake_at:
        why = f"it waits until {moment(workflow.wake_at)} and comes by itself"
    elif workflow.pause_reason == PauseReason.SUSPENDED:
        why = "it is suspended; resume it"
    elif workflow.basket:
        why = f"it waits in {workflow.basket}; resume it"
    else:
        why = "it waits for the one before it in its lane"
    return Check(False, Word.NOT_NEEDED, why, status)


def _stops_at_review(steps: Sequence[Step]) -> bool:
    return any(step.on_crash == "hold" for step in uncertain(steps))

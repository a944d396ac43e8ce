"""Everything an operator does to a workflow, whichever door he came through: page, admin or command line.

An act is done once: what it aims at may be reached already, then nothing is done and it says so. It is fenced: whoever
saw an older fence than the present one acts on what is no longer true, and is refused. Act and audit entry are one
transaction; a refusal is audited too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Required, TypedDict, Unpack
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from workflows import generations, verbs
from workflows.conf import settings
from workflows.errors import NotFound, Refused
from workflows.models import Status, Step, Workflow
from workflows.values import text

from . import rescuing
from .auditing import acted_with, note, state_of

REASON = 500  # characters of one


class Signed(TypedDict, total=False):
    """Who acts, through which door, why, and what he had before his eyes."""

    by: Required[str]
    via: Required[str]  # page, admin, cli, api, batch
    reason: str
    fence: int | None  # the one the operator saw; None: whatever is true now
    token: str  # of the form he pressed: the same one acts once


@dataclass(frozen=True, slots=True)
class Done:
    """What came of an act. Not `changed`: it was so already."""

    workflow: Workflow
    changed: bool
    sentence: str


def fail(workflow_id: UUID, **signed: Unpack[Signed]) -> Done:
    """End it as failed, whoever holds it."""
    return _act("fail", workflow_id, signed, verbs.fail, "has failed", _is_failed)


def cancel(workflow_id: UUID, **signed: Unpack[Signed]) -> Done:
    """Cancel it, or ask its worker to."""
    return _act("cancel", workflow_id, signed, verbs.cancel, "is cancelled", _is_cancelled)


def pause(workflow_id: UUID, **signed: Unpack[Signed]) -> Done:
    """Suspend it, or ask its worker to."""
    return _act("pause", workflow_id, signed, verbs.pause, "is suspended", _is_suspended)


def resume(
    workflow_id: UUID,
    *,
    basket: str = "",
    path: str = "",
    result: Any = None,
    variables: Mapping[str, Any] | None = None,
    done: bool = False,
    **signed: Unpack[Signed],
) -> Done:
    """Let a suspended workflow go on, or answer one pend."""

    def act(pk: UUID, *, by: str, reason: str) -> Workflow:
        given: dict[str, Any] = {"basket": basket, "path": path, "result": result, "done": done}
        return verbs.resume(pk, by=by, reason=reason, variables=variables, **given)

    return _act("resume", workflow_id, signed, act, "goes on", variables=variables)


def move_to(workflow_id: UUID, to: str, *, basket: str = "", path: str = "", **signed: Unpack[Signed]) -> Done:
    """Have what waits for a person wait in another basket."""

    def act(pk: UUID, *, by: str, reason: str) -> Workflow:
        return verbs.move_to(pk, to, basket=basket, path=path, by=by, reason=reason)

    def is_there(workflow: Workflow) -> bool:
        waiting = Step.objects.filter(workflow=workflow, status=Step.Status.WAITING)
        waiting = waiting.filter(path=path) if path else waiting
        return waiting.filter(basket=to).exists() and not waiting.exclude(basket__in=["", to]).exists()

    return _act("move", workflow_id, signed, act, f"waits in {to}", is_there, beside=_pends)


def revive(workflow_id: UUID, **signed: Unpack[Signed]) -> Done:
    """Continue a failed or cancelled workflow where it stopped."""
    return _act("revive", workflow_id, signed, rescuing.revive, "is due again")


def discard(workflow_id: UUID, **signed: Unpack[Signed]) -> Done:
    """Put a dead letter aside."""
    return _act("discard", workflow_id, signed, verbs.discard, "is put aside", _is_discarded)


def recover(
    workflow_id: UUID,
    *,
    variables: Mapping[str, Any] | None = None,
    reset_attempts: bool = False,
    **signed: Unpack[Signed],
) -> Done:
    """Bring back what a dead worker held, an orphan before its time, or what has failed; perhaps with new variables."""

    def act(pk: UUID, *, by: str, reason: str) -> Workflow:
        workflow = Workflow.objects.select_related("worker").get(pk=pk)
        rescuing.refuse_unless_recoverable(workflow)
        if variables:
            rescuing.set_variables(workflow, variables, by=by)
        if reset_attempts:
            rescuing.reset_counter(workflow, by=by)
        return rescuing.rescue(workflow, by=by, reason=reason)

    rescuing.bury(workflow_id, signed.get("fence"))
    is_reached = _never if variables or reset_attempts else _is_due
    return _act("recover", workflow_id, signed, act, "is due again", is_reached, variables=variables)


def rerun_from(
    workflow_id: UUID,
    step: str,
    *,
    path: str = ".",
    occurrence: int = 1,
    variables: Mapping[str, Any] | None = None,
    **signed: Unpack[Signed],
) -> Done:
    """Begin a new generation that keeps what came before a chosen step."""

    def act(pk: UUID, *, by: str, reason: str) -> Workflow:
        return generations.rerun_from(
            pk, step, path=path, occurrence=occurrence, by=by, reason=reason, variables=variables
        )

    return _act("rerun_from", workflow_id, signed, act, f"runs again from {step}", variables=variables)


def reopen(
    workflow_id: UUID,
    ticket: str,
    *,
    basket: str = "",
    variables: Mapping[str, Any] | None = None,
    **signed: Unpack[Signed],
) -> Done:
    """Begin a new generation at the handler of a ticket."""

    def act(pk: UUID, *, by: str, reason: str) -> Workflow:
        return generations.reopen(pk, ticket, basket=basket, by=by, reason=reason, variables=variables)

    return _act("reopen", workflow_id, signed, act, f"is open again at {ticket}", variables=variables)


# -- aims that are reached already --------------------------------------------------------------------------------------


def _never(workflow: Workflow) -> bool:
    return False


def _is_failed(workflow: Workflow) -> bool:
    return workflow.status == Status.FAILED


def _is_cancelled(workflow: Workflow) -> bool:
    return workflow.status == Status.CANCELLED or (workflow.asked or {}).get("what") == "cancel"


def _is_suspended(workflow: Workflow) -> bool:
    return workflow.pause_reason == "suspended" or (workflow.asked or {}).get("what") == "pause"


def _is_discarded(workflow: Workflow) -> bool:
    return workflow.status == Status.FAILED and "discarded" in (workflow.error or {})


def _is_due(workflow: Workflow) -> bool:
    rows = Workflow.objects.filter(pk=workflow.pk, status__in=[Status.QUEUED, Status.RUNNING], wake_at__lte=Now())
    return rows.exists()


def _pends(workflow: Workflow) -> dict[str, Any]:
    """Where its paths wait, if the row does not say: it names the deepest, and none while somebody holds it."""
    waiting = Step.objects.filter(workflow=workflow, status=Step.Status.WAITING).exclude(basket="")
    said = ", ".join(
        step.basket if step.path == "." else f"{step.basket} on {step.path}"
        for step in waiting.order_by("path", "position")
    )
    return {"pends": said} if said != workflow.basket else {}


# -- one act ----------------------------------------------------------------------------------------------------------


def _act(
    name: str,
    pk: UUID,
    signed: Signed,
    act: Callable[..., Workflow],
    said: str,
    is_reached: Callable[[Workflow], bool] = _never,
    *,
    variables: Mapping[str, Any] | None = None,
    beside: Callable[[Workflow], dict[str, Any]] = lambda _: {},
) -> Done:
    by, via, reason = signed["by"], signed["via"], signed.get("reason", "")
    seen: Workflow | None = None
    try:
        with transaction.atomic(using=settings().database):
            text(reason, "The reason", REASON)
            seen = workflow = _lock(pk)
            if done := acted_with(workflow, signed.get("token", "")):
                return Done(done, False, f"{workflow}: this was done already; nothing was done again.")
            if is_reached(workflow):
                return Done(workflow, False, f"{workflow} {said} already; nothing was done.")
            if signed.get("fence") not in (None, workflow.fence):
                raise Refused(f"Nothing was done: {workflow} has changed since you looked, it is {_present(workflow)}.")
            before = state_of(workflow, variables) | beside(workflow)
            after = act(pk, by=by, reason=reason)
            after.refresh_from_db()
            told: dict[str, Any] = {
                "before": before,
                "after": state_of(after, variables) | beside(after),
                "token": signed.get("token", ""),
            }
            note(name, workflow, by=by, via=via, reason=reason, **told)
    except Refused as refusal:
        note(name, seen or Workflow(pk=pk, name=""), by=by, via=via, reason=reason, refused=str(refusal))
        raise
    asked = (after.asked or {}).get("what") == name
    return Done(after, True, f"{after}: its worker is asked to {name} it." if asked else f"{after} {said}.")


def _lock(pk: UUID) -> Workflow:
    rows = Workflow.objects.using(settings().database).select_for_update(of=("self",)).select_related("worker")
    workflow = rows.filter(pk=pk).first()
    if workflow is None:
        raise NotFound(f"There is no workflow {pk}; retention may have removed it.")
    return workflow


def _present(workflow: Workflow) -> str:
    held = f" on {workflow.worker}" if workflow.worker else ""
    return f"{workflow.status}{held} now"

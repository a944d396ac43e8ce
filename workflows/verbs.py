"""What operators, signals and the sweep do to a workflow: one transaction, one move, one line in the diary.

A waiting workflow is acted upon at once. A held one gets a request, which its holder sees and carries out before its
next step; until then it says so. Every verb locks the row first and refuses with a sentence.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from .baskets import check_basket, kind_of
from .conf import settings
from .errors import NotFound, Refused
from .ids import uuid7
from .models import PauseReason, Signal, Status, Step, Workflow
from .moves import move, tell
from .notify import DUE, poke
from .tips import failed_tips
from .values import encode, text
from .variables import check_types

Id = UUID | str
SIGNAL = "signal:"  # begins the basket of whoever waits for one
UNREAD = 1000  # messages in an inbox: whoever claims the workflow reads them all


def fail(workflow_id: Id, *, by: str, reason: str) -> Workflow:
    """End a workflow by hand. Whoever holds it finds its fence broken at the next write."""
    with _locked(workflow_id) as workflow:
        error = {"type": "FailedByHand", "message": reason or "failed by hand"}
        ended: dict[str, Any] = {"error": error, "finished_at": Now(), "asked": None}
        return move(workflow, "fail", event="workflow.failed", by=by, data={"reason": reason}, **ended)


def cancel(workflow_id: Id, *, by: str = "", reason: str = "") -> Workflow:
    """Cancel at once if nobody holds it, else ask the holder."""
    with _locked(workflow_id) as workflow:
        if workflow.worker_id:
            return _ask(workflow, "cancel", by, reason)
        return move(
            workflow,
            "cancel",
            event="workflow.cancelled",
            by=by,
            data={"reason": reason},
            finished_at=Now(),
            asked=None,
        )


def pause(workflow_id: Id, *, by: str = "", reason: str = "") -> Workflow:
    """Suspend it until somebody resumes it."""
    with _locked(workflow_id) as workflow:
        if workflow.worker_id:
            return _ask(workflow, "pause", by, reason)
        return move(
            workflow, "suspend", event="workflow.suspended", by=by, data={"reason": reason}, pause_reason="suspended"
        )


def resume(
    workflow_id: Id,
    *,
    by: str = "",
    reason: str = "",
    basket: str = "",
    path: str = "",
    result: Any = None,
    variables: Mapping[str, Any] | None = None,
    done: bool = False,
) -> Workflow:
    """Let a suspended workflow go on, or answer one pend: the named one, else the deepest.

    A pended step that is to be executed on resume runs again, unless `done` says that its work was done elsewhere.
    """
    encode(result, "The result")
    encode(dict(variables or {}), "The variables")
    with _locked(workflow_id) as workflow:
        if workflow.is_finished:
            raise Refused(f"Cannot resume {workflow} ({workflow.status}): it has ended.")
        if variables:
            check_types(workflow.variables, variables)
            workflow.variables |= variables
            workflow.save(update_fields=["variables"])
        if workflow.asked and workflow.asked["what"] == "pause":
            workflow.asked = None
            workflow.nudges += 1
            tell(workflow, "workflow.resume_asked", data=_note(by, reason), asked=None, nudges=workflow.nudges)
            _wake(str(workflow.pk))
            return workflow
        if workflow.pause_reason != PauseReason.SUSPENDED:
            _answer(workflow, basket, path, result, done, by)
            if workflow.worker_id or workflow.status != Status.PAUSED:  # held, or due already
                return _nudge(workflow)
        wake_at = Now() if workflow.running_at else workflow.due_at
        return move(
            workflow,
            "wake",
            event="workflow.resume_asked",
            by=by,
            data={"reason": reason},
            wake_at=wake_at,
            recovery_attempts=0,
            asked=None,
        )


def move_to(workflow_id: Id, to: str, *, by: str = "", reason: str = "", basket: str = "", path: str = "") -> Workflow:
    """Have what waits for a person wait in another basket: the named pend, else the deepest. Its deadline stays.

    No fence is raised: whoever holds the workflow goes on with its other paths, and is told where this one waits now.
    """
    check_destination(to)
    with _locked(workflow_id) as workflow:
        if workflow.is_finished:
            raise Refused(f"Cannot move {workflow} ({workflow.status}): it has ended.")
        step = _pended(workflow, "move", basket, path)
        if kind_of(step.basket) == "retry" and step.wake_at:
            raise Refused(f"Cannot move {workflow}: it waits in {step.basket}, and goes on by itself.")
        if step.basket == to:
            return workflow
        note = {"basket": step.basket, "to": to, "path": step.path, **(_note(by, reason) or {})}
        step.basket = to
        step.save(update_fields=["basket"])
        changes: dict[str, Any] = {}
        if workflow.worker_id:
            changes["nudges"] = workflow.nudges + 1
            _wake(str(workflow.pk))
        elif workflow.pause_reason == PauseReason.PEND:
            changes["basket"] = _deepest(_waiting(workflow)).basket
        tell(workflow, "pend.moved", data=note, **changes)
        return workflow


def check_destination(basket: str) -> None:
    """Only where a person looks: elsewhere nobody would ever come for it."""
    if kind_of(check_basket(basket)) == "retry" or basket.startswith(SIGNAL):
        raise Refused(f"Cannot move anything to {basket}: nobody looks for work there; name a basket of people.")


def revive(workflow_id: Id, *, by: str, reason: str) -> Workflow:
    """Continue a failed or cancelled workflow where it stopped; the failed step gets its tries anew."""
    with _locked(workflow_id) as workflow:
        _refuse_frozen(workflow, "revive")
        tips = [step.pk for step in failed_tips(Step.objects.filter(workflow=workflow), workflow.ticket)]
        Step.objects.filter(pk__in=tips).update(status=Step.Status.AGAIN, failures=0, ended_at=None)
        return move(
            workflow,
            "revive",
            event="workflow.revived",
            by=by,
            data={"reason": reason},
            wake_at=Now(),
            error=None,
            recovery_attempts=0,
            suspects=None,
            asked=None,
            refused_by="",
        )


def recover(workflow_id: Id, *, by: str, reason: str = "") -> Workflow:
    """Take a workflow over by hand: an orphan at once, a failed one by reviving it. A live holder keeps what it holds."""
    with _locked(workflow_id) as workflow:
        if workflow.status == Status.FAILED:
            return revive(workflow_id, by=by, reason=reason or "recovered by hand")
        if workflow.status != Status.RUNNING:
            raise Refused(f"Cannot recover {workflow} ({workflow.status}): it is not an orphan.")
        if workflow.worker and workflow.worker.ended_at is None:
            raise Refused(f"Cannot recover {workflow}: its worker {workflow.worker} is alive.")
        return move(workflow, "release", event="workflow.released", by=by, data={"reason": reason}, wake_at=Now())


def signal(workflow_id: Id, name: str, data: Any = None, *, uid: str = "", by: str = "") -> bool:
    """Put a message into the inbox. False if one with this id is there already."""
    text(name, "The signal's name", 80)
    encode(data, "The signal's data")
    with _locked(workflow_id) as workflow:
        if workflow.is_finished:
            raise Refused(f"Cannot signal {workflow} ({workflow.status}): it has ended.")
        uid = text(uid or str(uuid7()), "The signal's id", 200)
        try:
            with transaction.atomic(using=settings().database):
                Signal.objects.create(workflow=workflow, name=name, uid=uid, data=data, by=by[:200])
        except IntegrityError:
            return False
        if Signal.objects.filter(workflow=workflow, consumed_by="")[: UNREAD + 1].count() > UNREAD:
            raise Refused(
                f"Cannot signal {workflow}: {UNREAD:,} messages lie unread in its inbox; send it when some were read."
            )
        waits = Step.objects.filter(
            workflow=workflow, kind=Step.Kind.SIGNAL, status=Step.Status.WAITING, name=name
        ).exists()
        workflow.nudges += 1
        changes: dict[str, Any] = {"nudges": workflow.nudges}
        if waits and not workflow.worker_id and workflow.pause_reason == PauseReason.PEND:
            changes["wake_at"] = Now()
        tell(workflow, "signal.sent", data={"name": name, "uid": uid, **(_note(by, "") or {})}, **changes)
        _wake(str(workflow.pk) if workflow.worker_id else DUE)
        return True


def discard(workflow_id: Id, *, by: str, reason: str) -> Workflow:
    """Put a dead letter aside: it stays readable, but nobody needs to look at it any more."""
    with _locked(workflow_id) as workflow:
        if workflow.status != Status.FAILED:
            raise Refused(f"Cannot discard {workflow} ({workflow.status}): only failed workflows are dead letters.")
        error = (workflow.error or {}) | {"discarded": {"by": by, "reason": reason, "at": timezone.now().isoformat()}}
        tell(workflow, "workflow.discarded", data=_note(by, reason), error=error)
        return workflow


# -- parts ----------------------------------------------------------------------------------------------------------


@contextmanager
def _locked(workflow_id: Id) -> Iterator[Workflow]:
    """The workflow under its row lock, in one transaction; whoever waits for work is woken after the commit."""
    try:
        pk = UUID(str(workflow_id))
    except ValueError:
        raise NotFound(f"{workflow_id!r} is no workflow id.") from None
    with transaction.atomic(using=settings().database):
        rows = Workflow.objects.using(settings().database).select_for_update(of=("self",)).select_related("worker")
        workflow = rows.filter(pk=pk).first()
        if workflow is None:
            raise NotFound(f"There is no workflow {pk}; retention may have removed it.")
        yield workflow
        _wake(DUE)


def _refuse_frozen(workflow: Workflow, verb: str) -> None:
    """Only the newest generation may come to life again."""
    if newer := workflow.successor:
        raise Refused(f"Cannot {verb} {workflow} ({workflow.status}): it was reopened as {newer}; act on that one.")


def _ask(workflow: Workflow, what: str, by: str, reason: str) -> Workflow:
    if workflow.asked and workflow.asked["what"] == what:
        return workflow  # a double click is one act
    if workflow.asked and workflow.asked["what"] == "cancel":
        raise Refused(f"Cannot {what} {workflow}: it is being cancelled.")
    asked = {"what": what, "by": by, "at": timezone.now().isoformat(), "reason": reason}
    tell(workflow, f"workflow.{what}_asked", data=_note(by, reason), asked=asked, nudges=workflow.nudges + 1)
    _wake(str(workflow.pk))
    return workflow


def _nudge(workflow: Workflow) -> Workflow:
    Workflow.objects.filter(pk=workflow.pk).update(nudges=F("nudges") + 1)
    _wake(str(workflow.pk))
    return workflow


def _answer(workflow: Workflow, basket: str, path: str, result: Any, done: bool, by: str) -> None:
    """Resolve one pend. Human pends elsewhere stay."""
    step = _pended(workflow, "resume", basket, path)
    again = step.kind == Step.Kind.STEP and step.response != Step.Response.OK_PEND and not done
    step.status = Step.Status.AGAIN if again else Step.Status.DONE
    fields = ["status", "basket", "ended_at"]
    tell(workflow, "pend.resumed", data={"basket": step.basket, "path": step.path, **(_note(by, "") or {})})
    step.basket = ""
    step.ended_at = None if again else Now()
    if not again and result is not None:
        step.result = result
        fields.append("result")
    step.save(update_fields=fields)


def _pended(workflow: Workflow, verb: str, basket: str, path: str) -> Step:
    """What a person can answer: the named pend, else the deepest."""
    pends = [step for step in _waiting(workflow) if step.kind != Step.Kind.SIGNAL]
    found = [step for step in pends if (not basket or step.basket == basket) and (not path or step.path == path)]
    if not found:
        where = f" in {basket}" if basket else ""
        raise Refused(f"Cannot {verb} {workflow} ({workflow.status}): nothing of it waits for a person{where}.")
    return _deepest(found)


def _waiting(workflow: Workflow) -> list[Step]:
    return list(Step.objects.filter(workflow=workflow, status=Step.Status.WAITING).exclude(basket=""))


def _deepest(steps: list[Step]) -> Step:
    return max(steps, key=lambda step: (step.path.count("."), -step.pk))


def _note(by: str, reason: str) -> dict[str, Any] | None:
    return {key: value for key, value in {"by": by, "reason": reason}.items() if value} or None


def _wake(payload: str) -> None:
    transaction.on_commit(lambda: poke(payload), using=settings().database)

"""Recovery by an operator's hand: judge, take over, and leave one Recovery row for one rescue."""

import time
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from workflows import verbs
from workflows.conf import settings
from workflows.errors import Refused
from workflows.models import Status, Step, Workflow
from workflows.moves import tell
from workflows.takeover import release
from workflows.values import encode
from workflows.variables import check_types

from .checking import RECOVERABLE, Word, check
from .lookout import Lookout
from .models.recovery import DetectedBy, Finding, Outcome, Reason, Recovery
from .planning import Plan, plan_of


def bury(workflow_id: UUID, fence: int | None) -> None:
    """If its worker is dead but not yet ended, end it: before the workflow is locked, for that is the order of locks."""
    rows = Workflow.objects.using(settings().database).filter(pk=workflow_id, worker__isnull=False)
    held = rows.filter(worker__ended_at=None).values("worker", "fence").first()
    if held is None or fence not in (None, held["fence"]):
        return
    lookout = Lookout()
    if held["worker"] not in lookout.look() and held["worker"] in lookout.suspects:
        time.sleep(settings().death_gap)
    lookout.end_dead()


def refuse_unless_recoverable(workflow: Workflow) -> None:
    found = check(workflow.pk)
    if found.reason == Word.ALREADY_TERMINAL and workflow.status == Status.FAILED:
        return
    if found.reason not in RECOVERABLE:
        raise Refused(f"Cannot recover {workflow} ({workflow.status}): {found.why}.")
    if workflow.worker and workflow.worker.ended_at is None:
        raise Refused(f"Cannot recover {workflow} ({workflow.status}): its worker {workflow.worker} may be alive.")


def rescue(workflow: Workflow, *, by: str, reason: str) -> Workflow:
    """On a row the caller has locked and found recoverable."""
    if workflow.is_finished:
        return revive(workflow.pk, by=by, reason=reason)
    if workflow.worker:
        if release(workflow.pk, by=by, reason=reason, detected_by=DetectedBy.OPERATOR) is None:
            raise Refused(f"Cannot recover {workflow}: somebody else is taking it over.")
        return workflow
    plan = _plan(workflow)
    workflow = verbs.recover(workflow.pk, by=by, reason=reason)
    if not _hasten(workflow, by=by, note=reason):
        _record(workflow, plan, by=by, note=reason)
    return workflow


def revive(workflow_id: UUID, *, by: str, reason: str) -> Workflow:
    plan = _plan(Workflow.objects.get(pk=workflow_id))
    workflow = verbs.revive(workflow_id, by=by, reason=reason or "revived by hand")
    _record(workflow, plan, by=by, note=reason)
    return workflow


def set_variables(workflow: Workflow, variables: Mapping[str, Any], *, by: str) -> None:
    """A variable keeps its type (S3-083)."""
    given = dict(variables)
    encode(given, "The variables")
    check_types(workflow.variables, given)
    told = {"by": by, "names": sorted(given)}
    tell(workflow, "variables.changed", data=told, variables=workflow.variables | given)


def reset_counter(workflow: Workflow, *, by: str) -> None:
    told = {"by": by, "was": workflow.recovery_attempts}
    tell(workflow, "recovery.reset", data=told, recovery_attempts=0, suspects=None)


# -- parts ----------------------------------------------------------------------------------------------------------


def _plan(workflow: Workflow) -> Plan:
    return plan_of(workflow, list(Step.objects.filter(workflow=workflow)))


def _hasten(workflow: Workflow, *, by: str, note: str) -> bool:
    """A rescue is under way already and waits for its time: it stays one rescue, and begins now."""
    rescues = Recovery.objects.filter(workflow_id=workflow.pk, outcome=Outcome.PENDING)
    return bool(rescues.update(due_at=Now(), actor=by[:200], note=note[:500]))


def _record(workflow: Workflow, plan: Plan, *, by: str, note: str) -> None:
    """What no take-over has recorded: nobody died, an operator wanted it."""
    Recovery.objects.create(
        workflow_id=workflow.pk,
        workflow_name=workflow.name,
        workflow_key=workflow.key or "",
        fence=workflow.fence - 1,
        seq=workflow.seq,
        finding=Finding.BY_HAND,
        reason=Reason.MANUAL,
        detected_by=DetectedBy.OPERATOR,
        actor=by[:200],
        note=note[:500],
        step=plan.broken[0].name if plan.broken else plan.after,
        in_step=bool(plan.broken),
        attempt=plan.attempt,
        max_attempts=plan.max_attempts,
        plan=plan.as_json(),
        due_at=Now(),
    )

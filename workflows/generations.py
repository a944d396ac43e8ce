"""Running again what has ended: a new row of the same name and key, one generation on; the old one is frozen for audit.

`reopen` enters the handler of a ticket, `rerun_from` the body at a chosen step. Both are one transaction under the lock
of the old row: whoever dies in it leaves nothing, and of two operators the second finds that there is a newer one.
"""

from collections.abc import Mapping
from typing import Any

from django.db import connections
from django.db.models.functions import Now

from .conf import settings
from .definitions import Definition, find
from .errors import Refused
from .keeping import keep, root_of
from .models import Event, PauseReason, Step, Workflow
from .moves import move, succeed
from .paths import DESK
from .values import encode, text
from .variables import check_types
from .verbs import Id, _locked, _refuse_frozen

NAMED = 12  # recorded steps that a refusal names

COPY_STEPS = """
INSERT INTO rekindle_step (workflow_id, path, position, name, occurrence, kind, status, response, attempt, failures, on_crash,
    idempotent, fence, began_at, ended_at, wake_at, basket, result, error)
SELECT %(new)s, path, position, name, occurrence, kind, CASE WHEN again THEN 'open' ELSE status END, response, attempt, failures,
    on_crash, idempotent, 0, began_at, CASE WHEN NOT again THEN ended_at END, wake_at, basket,
    CASE WHEN NOT again THEN result END, CASE WHEN NOT again THEN error END
FROM (SELECT *, id = ANY(%(opened)s) AS again FROM rekindle_step WHERE id = ANY(%(kept)s)) AS kept ORDER BY id
"""
COPY_UNREAD_SIGNALS = """
INSERT INTO rekindle_signal (workflow_id, name, uid, data, by, sent_at, consumed_by)
SELECT %(new)s, name, uid, data, by, sent_at, '' FROM rekindle_signal WHERE workflow_id = %(old)s AND consumed_by = '' ORDER BY id
"""


def reopen(
    workflow_id: Id,
    ticket: str,
    *,
    by: str,
    reason: str,
    variables: Mapping[str, Any] | None = None,
    basket: str = "",
) -> Workflow:
    """Enter the handler of a ticket in a new generation; with a basket, once a person has resumed it there.

    Possible for what has ended and for what is blocked, which ends as failed by it.
    """
    text(basket, "The basket's name", 80)
    with _locked(workflow_id) as old:
        _refuse_frozen(old, "reopen")
        if not old.is_finished and old.pause_reason != PauseReason.BLOCKED:
            raise Refused(f"Cannot reopen {old} ({old.status}): it has not ended; cancel or fail it first.")
        definition = _fitting(old)
        if ticket not in definition.tickets:
            known = ", ".join(sorted(definition.tickets)) or "none"
            raise Refused(f"Cannot reopen {old} with {ticket!r}: {old.name} has no such ticket. It has: {known}.")
        changed = _changed(old, variables)
        if not old.is_finished:
            why = {"reason": f"blocked, and reopened with the ticket {ticket}"}
            move(old, "fail", event="workflow.failed", by=by, data=why, error=old.error, finished_at=Now())
        note = {"ticket": ticket, "basket": basket, "by": by, "reason": reason}
        new = succeed(old, note=note, basket=basket, version=definition.version, ticket=ticket, variables=changed)
        if basket:
            Step.objects.create(
                workflow=new,
                path=DESK,
                position=0,
                name=basket,
                kind=Step.Kind.PEND,
                status=Step.Status.WAITING,
                attempt=0,
                began_at=Now(),
                basket=basket,
            )
        _copy(old, new)
        return new


def rerun_from(
    workflow_id: Id,
    step: str = "",
    *,
    path: str = ".",
    occurrence: int = 1,
    by: str,
    reason: str,
    variables: Mapping[str, Any] | None = None,
) -> Workflow:
    """Run the chosen step and all after it again in a new generation; what lies before it is kept. No step: from the top."""
    with _locked(workflow_id) as old:
        _refuse_frozen(old, "rerun")
        if not old.is_finished:
            raise Refused(f"Cannot rerun {old} ({old.status}): it has not ended; cancel or fail it first.")
        definition = _fitting(old)
        changed = _changed(old, variables)
        kept: list[int] = []
        opened: list[int] = []
        if step:
            steps = list(Step.objects.filter(workflow=old).defer("result", "error").order_by("pk"))
            chosen = _find(old, steps, step, path, occurrence)
            kept, opened = keep(steps, chosen)
            ticket = root_of(chosen.path)[2:-1]
        else:
            ticket = (Event.objects.get(workflow=old, seq=1).data or {}).get("ticket", "")
        note = {
            "step": f"{path}{step}" if step else "",
            "kept": len(kept),
            "ticket": ticket,
            "by": by,
            "reason": reason,
        }
        new = succeed(old, note=note, version=definition.version, ticket=ticket, variables=changed)
        _copy(old, new, kept, opened)
        return new


# -- parts ----------------------------------------------------------------------------------------------------------


def _fitting(old: Workflow) -> Definition:
    definition = find(old.name)
    definition.check_input(old.input)
    return definition


def _changed(old: Workflow, variables: Mapping[str, Any] | None) -> dict[str, Any]:
    check_types(old.variables, variables or {})
    changed: dict[str, Any] = old.variables | dict(variables or {})
    encode(changed, "The variables")
    return changed


def _find(old: Workflow, steps: list[Step], name: str, path: str, occurrence: int) -> Step:
    steps = [step for step in steps if step.path != DESK]
    for step in steps:
        if (step.path, step.name, step.occurrence) == (path, name, occurrence):
            return step
    known = ", ".join(f"{step}~{step.occurrence}" if step.occurrence > 1 else str(step) for step in steps[:NAMED])
    more = f" and {len(steps) - NAMED} more" if len(steps) > NAMED else ""
    which = f"{path}{name}{f'~{occurrence}' if occurrence != 1 else ''}"
    raise Refused(f"Cannot rerun {old} from {which}: no such step is recorded. There are: {known or 'none'}{more}.")


def _copy(old: Workflow, new: Workflow, kept: list[int] | None = None, opened: list[int] | None = None) -> None:
    """The kept steps, and the messages nobody has read yet."""
    with connections[settings().database].cursor() as cursor:
        if kept:
            cursor.execute(COPY_STEPS, {"new": new.pk, "kept": kept, "opened": opened})
        cursor.execute(COPY_UNREAD_SIGNALS, {"old": old.pk, "new": new.pk})
    new.refresh_from_db()

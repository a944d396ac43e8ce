"""Work begun elsewhere comes in: by another system, or before there was a diary.

Nobody here can see who runs it, so the one thing known is when it began. Past the threshold, or if that is unknown, it is
an orphan that is due at once; before, it is due when the threshold is reached. The claim counts its first recovery.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.postgres.functions import TransactionNow as Now
from django.db import transaction
from django.db.models import DateTimeField, ExpressionWrapper
from django.db.models.functions import Greatest, Least
from django.utils import timezone

from .conf import settings
from .definitions import Definition, find
from .errors import BadInput
from .models import Step, Workflow
from .moves import move
from .starting import _ask, _insert_or_find
from .values import encode, text


def adopt(
    name: str | Definition,
    input: Mapping[str, Any] | None = None,
    *,
    steps_done: Mapping[str, Any],
    running_at: datetime | None = None,
    key: str | None = None,
    by: str = "",
) -> Workflow:
    """Take over a workflow whose first steps were done elsewhere: their results by name, in the order of the body.

    The same key and input return the one that was adopted before, as it is now.
    """
    definition = find(name)
    if running_at is not None and timezone.is_naive(running_at):
        raise BadInput(f"The time {running_at} has no time zone; give an aware datetime.")
    for step, result in steps_done.items():
        encode(result, f"The result of step {text(step, 'The name of a step', 200)}")
    asked = _ask(definition, input or {}, key, None, None)
    database = settings().database
    with transaction.atomic(using=database):
        pk = _insert_or_find(definition, [asked], None)[0]
        workflow = Workflow.objects.using(database).select_for_update().get(pk=pk)
        if pk != UUID(asked["id"]):
            return workflow
        note = {"steps": list(steps_done), "running_at": running_at and running_at.isoformat()}
        wake_at = _stale_at(running_at, definition.stale_after or settings().stale_after)
        move(workflow, "adopt", event="workflow.adopted", by=by, data=note, running_at=running_at, wake_at=wake_at)
        Step.objects.bulk_create(
            Step(
                workflow=workflow,
                position=position,
                name=step,
                status=Step.Status.DONE,
                response=Step.Response.OK_PROCEED,
                fence=workflow.fence,
                ended_at=Now(),
                result=result,
            )
            for position, (step, result) in enumerate(steps_done.items())
        )
        workflow.refresh_from_db()
        return workflow


def _stale_at(running_at: datetime | None, after: float) -> Any:
    """By the database's clock; what claims to begin later than now begins now."""
    if running_at is None:
        return Now()
    stale = ExpressionWrapper(Least(running_at, Now()) + timedelta(seconds=after), output_field=DateTimeField())
    return Greatest(stale, Now())

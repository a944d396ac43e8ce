"""Atomic steps: the body's own ORM writes and the step's record commit together, so its effects happen exactly once.

The body runs in a transaction on the ordinary Django connection. The workflow's row is locked last, just before the
commit, so no user code ever runs under that lock.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.db import InterfaceError, OperationalError, connections, transaction

from .conf import settings
from .errors import Dropped, Fenced
from .held import Entry, Recorded
from .retry import is_away

if TYPE_CHECKING:
    from .run import Run

Settled = tuple[dict[str, Any], Callable[[], Any]]


class AlreadyDone(Exception):
    """The commit went through although nobody heard it."""

    def __init__(self, result: Any) -> None:
        self.result = result


def commit_with(run: "Run", step: Recorded, body: Callable[[], Any], settle: Callable[[Any], Settled]) -> Any:
    database = settings().database
    fence = run._held.fence
    before = step.status
    ticket = ""
    try:
        with transaction.atomic(using=database, durable=_outermost(database)):
            write, after = settle(body())
            ticket = write.pop("ticket", "")
            asked = _apply_last(run, step, write, ticket, fence, database)
    except (OperationalError, InterfaceError) as error:
        step.status = before
        if is_away(error) and (found := _recorded(run, step, fence, database)) is not None:
            raise AlreadyDone(found[0]) from error
        raise
    except BaseException:
        step.status = before
        raise
    run._held.nudge(*asked)
    if step.wake_in is not None:
        step.due = time.monotonic() + step.wake_in
    if ticket:
        run._held.jump(ticket, run.path, run._epoch)
        raise Dropped
    return after()


def _outermost(database: str) -> bool:
    return not connections[database].in_atomic_block  # a TestCase wraps everything in one


def _apply_last(
    run: "Run", step: Recorded, write: dict[str, Any], ticket: str, fence: int, database: str
) -> tuple[int, dict[str, Any] | None]:
    """Under the fence of its beginning: a ticket raised meanwhile has dropped this path, and the database knows."""
    held = run._held
    with held.lock:
        told = held.opening.pop(step.key, None) is None
    if told:
        held.write(epoch=run._epoch)  # the journal has the line that it began, and may not find it ended already
    entry = Entry(fence=fence)
    with held.lock:
        if run._epoch != held.epoch:
            raise Dropped
        held._record(entry, step, step.status, write["seconds"], write["result"], None)
        held._tell(entry, write["event"], step, write["seconds"], write.get("data"))
        if "variables" in write:
            entry.row["variables"] = write["variables"]
        if ticket:
            entry.row["ticket"] = ticket  # if the jump that follows is lost, replay makes it
    with connections[database].cursor() as cursor:
        cursor.execute("SELECT FROM rekindle_workflow WHERE id = %s FOR NO KEY UPDATE", [held.id])
        applied = held.journal.apply(cursor, [(held, entry)])
    if held.id in applied:
        asked: tuple[int, dict[str, Any] | None] = applied[held.id]
        return asked
    if run._epoch != held.epoch:
        raise Dropped
    fenced = Fenced()
    held.refuse(fenced)
    raise fenced


def _recorded(run: "Run", step: Recorded, fence: int, database: str) -> tuple[Any] | None:
    """Was the step stored after all? The lock waits for the old session's commit, if the server still runs it."""
    from .models import Step, Workflow

    try:
        with transaction.atomic(using=database):
            list(Workflow.objects.using(database).select_for_update(no_key=True).filter(pk=run.id).values_list("pk"))
            return (
                Step.objects.using(database)
                .filter(workflow=run.id, path=step.path, position=step.position, status="done", fence=fence)
                .values_list("result")
                .first()
            )
    except (OperationalError, InterfaceError):
        return None  # still away: whatever the run writes next meets the ended step, and it reads again

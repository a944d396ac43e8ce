"""For the host: Django signals that say what has happened to a workflow.

    @receiver(workflow_finished)
    def look(sender, workflow_id, name, key, status, **_): ...

They are sent after the commit, in the process that made it durable, and no part of the guarantee: best effort, at most
once, lost if that process dies just then. What must happen belongs into an atomic step or a workflow of its own.
A receiver runs on the thread of the run, or of whoever acted: a slow one costs a slot. One that raises harms nobody.
"""

import logging
from typing import Any
from uuid import UUID

from django.db import transaction
from django.dispatch import Signal

from .conf import settings

log = logging.getLogger("rekindle")

workflow_finished = Signal()  # workflow_id, name, key, status: completed, failed or cancelled
workflow_recovered = Signal()  # workflow_id, name, key, attempt, max_attempts: it runs again after its holder was lost


def tell_finished(workflow_id: UUID, name: str, key: str | None, status: str) -> None:
    _send(workflow_finished, workflow_id=workflow_id, name=name, key=key, status=status)


def tell_recovered(workflow_id: UUID, name: str, key: str | None, attempt: int, max_attempts: int) -> None:
    _send(workflow_recovered, workflow_id=workflow_id, name=name, key=key, attempt=attempt, max_attempts=max_attempts)


def _send(signal: Signal, **told: Any) -> None:
    """After the commit, if we are inside a transaction; nothing at all if nobody listens."""
    if not signal.receivers:
        return
    from .models import Workflow

    def send() -> None:
        try:
            signal.send_robust(sender=Workflow, **told)  # logs whatever a receiver raises
        except BaseException:  # but sys.exit() it lets through
            log.exception("a receiver tried to end its thread", extra={"workflow": str(told["workflow_id"])})

    try:
        transaction.on_commit(send, using=settings().database)
    except transaction.TransactionManagementError:
        log.exception("a body left its connection without autocommit; a signal is not sent")

"""Kill this worker: for a demo, to see with one's own eyes what happens next. Real, by SIGKILL, without a goodbye.

Nobody can be killed unless whoever started the workers of this host says which processes are theirs. In production
nobody says so, and there is no such page.
"""

import os
import signal
import socket
from collections.abc import Callable

from django.db import transaction

from workflows.conf import settings
from workflows.errors import Refused
from workflows.models import Worker, Workflow

from .auditing import note_change
from .lookout import sign_of

may_kill: list[Callable[[int], bool]] = []  # asked of a process on this host; the demo's `up` adds itself


def is_offered() -> bool:
    return bool(may_kill)


def can_be_killed(host: str, pid: int) -> bool:
    return host == socket.gethostname()[:200] and any(is_theirs(pid) for is_theirs in may_kill)


def kill(number: int, *, by: str, via: str = "page") -> str:
    """End the process of a worker, and say so. Raises Worker.DoesNotExist."""
    worker = Worker.objects.using(settings().database).get(pk=number)
    try:
        held = _kill(worker, by=by, via=via)
    except Refused as refusal:
        note_change("kill", "worker", worker, by=by, via=via, refused=str(refusal))
        raise
    return f"Killed {worker}, which held {held} workflow{'' if held == 1 else 's'}."


def _kill(worker: Worker, *, by: str, via: str) -> int:
    """Returns how many workflows it held.

    The number of a process may be somebody else's by now. So the process is taken hold of first, and only then is it
    asked whose it is and whether the worker lives; what is killed is what was taken hold of.
    """
    try:
        process = os.pidfd_open(worker.pid)
    except (OSError, AttributeError):
        raise Refused(f"Nothing was done: {worker} is gone already, or runs elsewhere.") from None
    try:
        sign = sign_of(worker.pk)
        if sign is None or not sign.locked:
            raise Refused(f"Nothing was done: {worker} is dead already.")
        if not can_be_killed(worker.host, worker.pid):
            raise Refused(f"Nothing was done: {worker} was not started by the demo on this machine.")
        with transaction.atomic(using=settings().database):
            held = Workflow.objects.using(settings().database).filter(worker=worker).count()
            note_change("kill", "worker", worker, by=by, via=via, before={"held": held})
            signal.pidfd_send_signal(process, signal.SIGKILL)
        return held
    except ProcessLookupError:
        raise Refused(f"Nothing was done: {worker} has just ended by itself.") from None
    finally:
        os.close(process)

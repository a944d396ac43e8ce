"""A worker stands in for the scheduler: a duty that is overdue is run here, so that losing qcluster delays nothing.

Looking costs one small query every few seconds; the duty itself runs on a thread of its own, because the look-out for
dead workers must not wait for it. Of several workers one begins it (see `duties.run`).
"""

import logging
import threading
import time

from django.db import connections

from . import duties

log = logging.getLogger("rekindle")

LOOK_EVERY = 5.0
INTERVALS = 2  # without a run, until a worker takes it that the scheduler is not there


class Standby:
    def __init__(self) -> None:
        self._next = 0.0
        self._thread: threading.Thread | None = None

    def look_out(self) -> float:
        """Returns after how many seconds to look again."""
        if time.monotonic() < self._next or (self._thread and self._thread.is_alive()):
            return LOOK_EVERY
        self._next = time.monotonic() + LOOK_EVERY
        if names := duties.overdue(INTERVALS):
            self._thread = threading.Thread(target=stand_in, args=(names,), name="rekindle-duties", daemon=True)
            self._thread.start()
        return LOOK_EVERY


def stand_in(names: list[str]) -> None:
    """Each on its own: whatever one meets, the next is tried."""
    for name in names:
        try:
            duties.run(name, "worker", unless_within=duties.DUTIES[name].every * INTERVALS)
        except Exception as error:
            log.warning("the duty %s could not be recorded: %s", name, error)
            connections.close_all()
    connections.close_all()

"""A worker's hands for batches: it looks twice a second, and carries on in a thread of its own.

The look-out for dead workers must not wait for it, and does not.
"""

import logging
import threading
import time

from django.db import connections

from workflows.conf import settings

from ..bounds import bounded
from .carrying import carry_on, open_batches

log = logging.getLogger("rekindle")

LOOK_EVERY = 0.5
LONGEST = 45.0  # seconds a thread carries on; the next look begins another


class Hands:
    def __init__(self) -> None:
        self._next = 0.0
        self._thread: threading.Thread | None = None

    def look_out(self) -> float:
        """Returns after how many seconds to look again."""
        if time.monotonic() < self._next or (self._thread and self._thread.is_alive()):
            return LOOK_EVERY
        self._next = time.monotonic() + LOOK_EVERY
        if open_batches().exists():
            self._thread = threading.Thread(target=_lend, name="rekindle-batches", daemon=True)
            self._thread.start()
        return LOOK_EVERY


def _lend() -> None:
    try:
        with bounded(settings().database, LONGEST):
            carry_on(time.monotonic() + LONGEST)
    except Exception as error:
        log.warning("the batches wait for the database: %s", error)
    finally:
        connections.close_all()

"""The threads of a worker process: some run workflows, others help with parallel branches and timed bodies.

A body cannot be killed in a thread. One that does not come back when it should is lost: it keeps its thread, which is
replaced, and costs its process a slot until it returns after all.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from queue import SimpleQueue

log = logging.getLogger("rekindle")

Work = Callable[[], None]


def take_turns() -> None:
    """Ask that threads which this one starts do not push one another aside when they wake.

    Each commit wakes many at once, and all but one would only find that the interpreter's lock is taken. Where the
    system knows no such wish, or does not grant it, they work as well, at a third more processor time.
    """
    if hasattr(os, "SCHED_BATCH") and os.sched_getscheduler(0) == os.SCHED_OTHER:
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


class ThreadCrew:
    """Grows on demand and keeps its threads. Each works inside `lend()`, which gives it database access."""

    def __init__(self, helpers: int, lend: Callable[[], AbstractContextManager[Work]]) -> None:
        self.helpers = helpers  # how many may help with branches at a time
        self._lost: dict[threading.Event, float] = {}
        self._lend = lend
        self._work: SimpleQueue[Work] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = self._threads = self._helping = 0

    def hire(self, work: Work) -> None:
        """Run it on a thread, at once: a workflow that was given a slot, or a body whose run waits for it."""
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
            else:
                threading.Thread(target=self._labour, name=f"rekindle-run-{self._threads + 1}", daemon=True).start()
                self._threads += 1
        self._work.put(work)

    def offer(self, work: Work) -> bool:
        """Run it on another thread if a helper is to spare."""

        def help_out() -> None:
            try:
                work()
            finally:
                with self._lock:
                    self._helping -= 1

        with self._lock:
            if self._helping >= self.helpers:
                return False
            self._helping += 1
        self.hire(help_out)
        return True

    # -- bodies that do not come back, each known by the event that is set when it does ---------------------------------

    def lost(self, body: threading.Event) -> None:
        with self._lock:
            if not body.is_set():
                self._lost.setdefault(body, time.monotonic())

    def returned(self, body: threading.Event) -> None:
        with self._lock:
            body.set()
            self._lost.pop(body, None)

    def count_lost(self, at_least: float = 0) -> int:
        """How many bodies have been lost for at least so many seconds."""
        if not self._lost:
            return 0
        before = time.monotonic() - at_least
        with self._lock:
            return sum(since <= before for since in self._lost.values())

    def _labour(self) -> None:
        with self._lend() as end_of_body:
            while True:
                work = self._work.get()
                try:
                    work()
                    end_of_body()
                except BaseException:
                    log.exception("a thread of the worker met something it should not")
                with self._lock:
                    self._idle += 1

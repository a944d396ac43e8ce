"""The signals that mean "stop": Ctrl-C, SIGTERM, a closed terminal."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """Somebody asked to stop while a step was under way."""


class Bell:
    """Rings once to stop, again to hurry. Only inside `may_interrupt` does it break off what is being done:
    a child process must never be started and forgotten because a signal came in between."""

    def __init__(self) -> None:
        self.rung = 0
        self._interrupts = False
        for sign in STOP:
            signal.signal(sign, self._ring)

    def _ring(self, sign: int, frame: FrameType | None) -> None:
        self.rung += 1
        if self._interrupts:
            raise Stopped

    @contextmanager
    def may_interrupt(self) -> Iterator[None]:
        if self.rung:
            raise Stopped
        self._interrupts = True
        try:
            yield
        finally:
            self._interrupts = False

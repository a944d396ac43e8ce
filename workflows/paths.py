"""Parallel paths inside one workflow.

Branches run on helper threads when there are some to spare, else on the thread that waits for them, so however deep
blocks nest nobody waits for a thread that waits for him. A branch that has to wait is left and, while others still
run, entered again when its wait is over; when none runs any more the whole block waits.
"""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from .errors import Dropped, Parked, Stop
from .held import Held, Recorded

if TYPE_CHECKING:
    from .run import Run

DESK = ".reopened."  # where a reopened workflow pends first; no body and no handler runs on this path


class Crew(Protocol):
    """Threads."""

    def hire(self, work: Callable[[], None]) -> None:
        """Run it on another thread, at once."""

    def offer(self, work: Callable[[], None]) -> bool:
        """Run it on another thread, soon. False if none is to spare."""

    def lost(self, body: threading.Event) -> None:
        """A body did not come back in time: it costs a slot until it does."""

    def returned(self, body: threading.Event) -> None:
        """It came back, in time or after all. Sets the event."""


class Alone:
    """No helpers: everything but a timed body runs on the caller's thread."""

    def hire(self, work: Callable[[], None]) -> None:
        threading.Thread(target=work, name="rekindle-timed", daemon=True).start()

    def offer(self, work: Callable[[], None]) -> bool:
        return False

    def lost(self, body: threading.Event) -> None: ...

    def returned(self, body: threading.Event) -> None:
        body.set()


class Branch:
    """One branch of a block: ready, running, waiting (then `waits` says for what) or ended."""

    def __init__(self, path: str, body: Callable[["Run"], Any]) -> None:
        self.path, self.body = path, body
        self.state = "ready"
        self.waits: list[Recorded] = []
        self.outcome: Any = None
        self.stop: Stop | None = None

    @property
    def due(self) -> float | None:
        return min((step.due for step in self.waits if step.due is not None), default=None)

    def may_run(self, held: Held) -> bool:
        return self.state == "ready" or (
            self.state == "waiting" and any(not held.is_waiting(step) for step in self.waits)
        )


def run_branches(run: "Run", work: dict[str, Callable[["Run"], Any]]) -> list[Any]:
    """The outcome of every branch, exceptions included; or a stop, if the block has to wait or end."""
    held = run._held
    branches = [Branch(path, body) for path, body in work.items()]
    while True:
        with held.lock:
            if run._epoch != held.epoch:
                raise run._stopping(Dropped())
            now = time.monotonic()
            ready = next((branch for branch in branches if branch.may_run(held)), None)
            if ready is None:
                if any(branch.state == "running" for branch in branches):
                    held.changed.wait(_until_next(branches, now))
                    continue
                stop = _why_not(branches)
                if stop:
                    raise run._stopping(stop)
                return [branch.outcome for branch in branches]
            ready.state = "running"
        if not run._crew.offer(partial(_enter, run, ready)):
            _enter(run, ready)


def _enter(run: "Run", branch: Branch) -> None:
    """Run a branch until it ends or has to wait."""
    held = run._held
    state, outcome, waits, stop = "ended", None, [], None
    try:
        inner = type(run)(held, run._crew, branch.path)
        inner._epoch = run._epoch
        outcome = branch.body(inner)
        inner._finish()
    except Parked as parked:
        state, waits = "waiting", parked.args[0]
    except Stop as reason:
        stop = reason
    except Exception as error:
        outcome = error
    except BaseException as error:
        outcome = RuntimeError(f"{type(error).__name__} in branch {branch.path}: {error}")
    with held.lock:
        branch.state, branch.outcome, branch.waits, branch.stop = state, outcome, waits, stop
        held.changed.notify_all()


def _until_next(branches: list[Branch], now: float) -> float | None:
    due = [branch.due for branch in branches if branch.state == "waiting" and branch.due is not None]
    return max(0.001, min(due) - now) if due else None


def _why_not(branches: list[Branch]) -> Stop | None:
    """No branch can run. Either one was stopped, or some wait, or all have ended."""
    for branch in branches:
        if branch.stop:
            return branch.stop
    waits = [step for branch in branches if branch.state == "waiting" for step in branch.waits]
    return Parked(waits) if waits else None

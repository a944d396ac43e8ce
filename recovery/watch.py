"""The look-out of every worker: a few times a second, on a thread of its own."""

import time
from dataclasses import dataclass

from workflows.conf import settings

from . import rescues
from .sweep import Sweep, sweep_now

SETTLE_EVERY = 1.0


@dataclass
class Watch:
    """What one worker process remembers of its looks."""

    sweep: Sweep | None = None
    settle_at: float = 0.0
    settled_to: int = 0

    def look_out(self) -> float:
        """The first look of a process takes both looks at once: a starting worker finds the dead before its first claim.

        Returns after how many seconds to look again.
        """
        if self.sweep is None:
            self.sweep = Sweep("worker")
            if settings().startup_sweep:
                sweep_now("start-up", crowd_moves=0)
        elif settings().sweep_every and self.sweep.once()["released"]:
            self.settle_at = 0.0
        if time.monotonic() >= self.settle_at:
            self.settle_at = time.monotonic() + SETTLE_EVERY
            self.settled_to = rescues.settle(self.settled_to)
        return self.sweep.lookout.pause() or SETTLE_EVERY

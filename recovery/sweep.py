"""End the dead, and take over what any ended worker still holds, a bounded batch at a time."""

import logging
import time
from collections import Counter
from dataclasses import dataclass, field

from django.db import connections, transaction

from workflows.conf import settings
from workflows.takeover import BATCH, Taken, crowded_names, ended_holders, take_over

from . import rescues
from .lookout import Lookout

log = logging.getLogger("rekindle")

ONE_AT_A_TIME = "SELECT pg_try_advisory_xact_lock('rekindle_recovery_recovery'::regclass::oid::int, 0)"
LEFT_ALONE = 5.0  # how long to leave what the mode says to leave, before it is looked at again
LEFT_CROWDED = 0.5  # how long to let a crowd be claimed, before more of it is released
CROWD_MOVES = 2.0  # seconds in which somebody claims of a crowd, if anybody is there to do it
BUDGET = 40.0  # seconds a sweep that is asked for may take; the next one goes on
KEYS = ("found", "released", "gave_up", "cancelled", "held", "skipped")


@dataclass
class Sweep:
    """Looks out and takes over. One per thread that does so."""

    detected_by: str
    lookout: Lookout = field(default_factory=Lookout)
    leave_until: float = 0.0
    crowded: list[str] = field(default_factory=list)  # names of which more orphans are held back for now
    ended: list[int] = field(default_factory=list)  # whom the last look found dead
    taken: list[Taken] = field(default_factory=list)  # the last batch

    def once(self) -> Counter[str]:
        """One look and at most one batch; what somebody else sweeps right now is left to them."""
        done: Counter[str] = Counter(dict.fromkeys(KEYS, 0))
        self.ended, self.taken = self.lookout.end_dead(), []
        if self.ended:
            self.leave_until = 0.0
        holders = ended_holders()
        if not holders or time.monotonic() < self.leave_until:
            return done
        with transaction.atomic(using=settings().database):
            if not _alone():
                return done
            self.crowded = crowded_names()
            self.taken = taken = take_over(holders, detected_by=self.detected_by, crowded=self.crowded)
            done.update(row["outcome"] for row in taken)
            if not taken:
                done["held"] = rescues.note_left(holders, self.detected_by)
                self.leave_until = time.monotonic() + (LEFT_CROWDED if self.crowded else LEFT_ALONE)
        done["found"] = len(taken) + done["held"]
        if taken:
            log.warning("took over %(released)s, gave up %(gave_up)s, cancelled %(cancelled)s", done)
        return done


def sweep_now(detected_by: str, crowd_moves: float = CROWD_MOVES, budget: float = BUDGET) -> dict[str, int]:
    """Both looks, then batch after batch until nothing is left: for whoever does not look all the time.

    A herd is released as fast as it is claimed; if nobody claims it, its rest is left to the next sweep.
    """
    sweep = Sweep(detected_by)
    sweep.lookout.look_once_before()
    total, began = Counter(dict.fromkeys(KEYS, 0)), time.monotonic()
    moved = began
    while time.monotonic() - began < budget:
        done = sweep.once()
        total.update(done)
        if taken := done["found"] - done["held"]:
            moved = time.monotonic()
        if taken < BATCH and (not sweep.crowded or time.monotonic() - moved >= crowd_moves):
            break
        if not taken:
            time.sleep(settings().death_gap / 5)
    rescues.settle()
    return dict(total)


def _alone() -> bool:
    with connections[settings().database].cursor() as cursor:
        cursor.execute(ONE_AT_A_TIME)
        return bool(cursor.fetchone()[0])

"""Who is dead.

A worker is dead when its session lock is free, or its heartbeat older than the threshold, at two looks half a second apart
with no heartbeat between them. After a restart or a promotion, and after we ourselves could not look for a while, neither
says anything until workers had seconds to come back. Behind a pooler only silence counts. Looking costs the short list of
workers, however many workflows exist.
"""

import logging
import socket
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from django.db import connections
from django.db.models import Value
from django.db.models.functions import Now

from workflows.conf import settings
from workflows.liveness import INCARNATION, LOCKED
from workflows.models import Worker
from workflows.supervisor import buried
from workflows.takeover import end_worker

log = logging.getLogger("rekindle")

LOOK = f"""
SELECT w.id, w.heartbeat_at, now() - w.heartbeat_at >= %(stale_after)s * interval '1 second' AS silent,
    {LOCKED.format(worker="w.id")} AS locked, w.pooled,
    w.incarnation = {INCARNATION} OR now() - pg_postmaster_start_time() >= %(grace)s * interval '1 second' AS settled,
    split_part(w.incarnation, '/', 2) NOT IN ('', split_part({INCARNATION}, '/', 2)) AS promoted,
    {INCARNATION} AS server, now() AS at
FROM rekindle_worker w WHERE w.ended_at IS NULL AND (%(only)s::bigint IS NULL OR w.id = %(only)s)
"""  # noqa: S608  (constants)

# For pages, which must tell the truth also where nobody is left who could declare the dead dead.
HEARD = "{worker}.ended_at IS NULL AND {worker}.heartbeat_at > now() - {stale_after} * interval '1 second'"

# When this process first saw a server, by its monotonic clock. A scheduled task begins each look without memory of its own,
# and must find who died before a promotion, too.
first_sights: dict[str, float] = {}


class Sign(NamedTuple):
    """What one look saw of one worker."""

    worker: int
    heartbeat_at: datetime
    silent: bool
    locked: bool
    pooled: bool
    settled: bool
    promoted: bool  # since it took its lock, which was on the primary before this one
    server: str
    at: datetime

    @property
    def may_be_locked(self) -> bool:
        """A free lock says nothing behind a pooler, or before its worker had time to come back to a new server."""
        return self.locked or self.pooled or not self.settled


@dataclass
class Lookout:
    """Remembers who looked dead since when, and whose lock it last saw held when. One per thread that looks."""

    suspects: dict[int, tuple[float, datetime]] = field(default_factory=dict)  # since when, with which heartbeat
    seen: dict[int, datetime] = field(default_factory=dict)  # the last look that saw its lock held
    server: str = ""
    server_seen: float = 0.0  # since when the server has been there, as far as we know
    looked: float = float("inf")
    failed: bool = False  # the last look came to no end

    def look(self) -> dict[int, str]:
        """The dead, and what they died of: died or silent."""
        blind, self.failed = self.failed, True
        signs = _signs()
        now = time.monotonic()
        if signs and signs[0].server != self.server:
            # How long a restarted server has been there it says itself. A promoted one may have run for years: the
            # grace counts from our own first sight of it, also for who looks for the first time.
            unknown = bool(self.server) or any(sign.promoted for sign in signs)
            self.server, self.suspects = signs[0].server, {}
            self.server_seen = first_sights.setdefault(self.server, now) if unknown else float("-inf")
        if blind or now - self.looked > settings().sweep_every + settings().restart_grace:
            self.server_seen = now  # it did not answer us either: nobody could beat
        could_come_back = now - self.server_seen >= settings().restart_grace
        dead, suspects = {}, {}
        for sign in signs:
            if sign.locked:
                self.seen[sign.worker] = sign.at
            if not sign.silent and sign.may_be_locked:
                continue
            since, beat = self.suspects.get(sign.worker, (now, sign.heartbeat_at))
            suspects[sign.worker] = (since, beat) if beat == sign.heartbeat_at else (now, sign.heartbeat_at)
            waited = now - suspects[sign.worker][0] >= settings().death_gap
            if waited and sign.settled and could_come_back:
                dead[sign.worker] = "silent" if sign.silent else "died"
        self.suspects, self.looked, self.failed = suspects, now, False
        return dead

    def look_once_before(self) -> None:
        """The first of two looks, for whoever does not look all the time; waits until the second says something."""
        if self.look() or self.suspects:
            time.sleep(settings().death_gap)

    def end_dead(self) -> list[int]:
        """End whoever is dead, each after one more look under its row's lock."""
        ended = []
        dead = self.look()
        self.failed = bool(dead)  # until all of them are ended
        for number, why in dead.items():
            worker = Worker.objects.using(settings().database).get(pk=number)
            if end_worker(worker, why, signs=self._signs_of_life(worker), still=partial(_still, worker, why)):
                ended.append(number)
                log.warning(
                    "worker %s (%s) %s", worker, number, "died" if why == "died" else "has been silent for too long"
                )
        self.failed = False
        return ended

    def _signs_of_life(self, worker: Worker) -> list[Any]:
        """When it was last known to live, beside its heartbeat and what it wrote: our last look, or its parent's word."""
        signs: list[Any] = [Value(self.seen[worker.pk])] if worker.pk in self.seen else []
        if worker.pid in buried and worker.host == socket.gethostname()[:200]:
            signs.append(Now() - timedelta(seconds=time.monotonic() - buried[worker.pid]))
        return signs

    def pause(self) -> float:
        """How long until the next look: whoever looks dead is looked at again as soon as that says something."""
        if not self.suspects:
            return settings().sweep_every
        due = min(since for since, _ in self.suspects.values()) + settings().death_gap - time.monotonic()
        return min(settings().sweep_every, due) if due > 0 else settings().sweep_every  # it waits for something else


def sign_of(worker: int) -> Sign | None:
    """One look at one worker; None if it has ended."""
    return next(iter(_signs(worker)), None)


def _still(worker: Worker, why: str) -> bool:
    sign = sign_of(worker.pk)
    if sign is None:
        return False
    return sign.silent if why == "silent" else not sign.locked and sign.heartbeat_at == worker.heartbeat_at


def _signs(only: int | None = None) -> list[Sign]:
    given = {"stale_after": settings().stale_after, "grace": settings().restart_grace, "only": only}
    with connections[settings().database].cursor() as cursor:
        cursor.execute(LOOK, given)
        return [Sign(*row) for row in cursor.fetchall()]

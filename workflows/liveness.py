"""How a worker shows that it lives: a row with a heartbeat, and a session lock that ends exactly when its process does.

The lock's connection is idle; nothing else ever runs on it once it has the lock. A child that a step body forks must
not keep it open. A worker that loses it beats at once and locks again, before anybody has looked twice.
"""

import logging
import os
import resource
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg

from .conf import settings
from .connections import AWAY, behind_pooler, connect_engine
from .version import VERSION

log = logging.getLogger("rekindle")

# Whether somebody holds the lock of a worker: read, never tried.
LOCKED = """EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
    AND classid = 'rekindle_worker'::regclass AND objid = {worker}::int::oid
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"""
# A server that was restarted, or a replica that was promoted, is another one: no lock taken before is on it.
INCARNATION = """EXTRACT(EPOCH FROM pg_postmaster_start_time())::text || '/' ||
    left(pg_walfile_name(pg_current_wal_lsn()), 8)"""

NUMBER = "SELECT nextval(pg_get_serial_sequence('rekindle_worker', 'id'))"
LOCK = "SELECT pg_advisory_lock('rekindle_worker'::regclass::oid::int, %s)"
REGISTER = f"""
INSERT INTO rekindle_worker (
    id, host, pid, version, release, slots, knows, heartbeat_every, alone, pooled, incarnation, memory, lost, ended_why)
VALUES (%s, %s, %s, %s, %s, %s, %s::jsonb, %s, %s, %s, {INCARNATION}, 0, 0, '')
"""  # noqa: S608  (constants)
BEAT = """
UPDATE rekindle_worker SET heartbeat_at = clock_timestamp(), memory = %s, lost = %s WHERE id = %s AND ended_at IS NULL
"""
GOODBYE = """
UPDATE rekindle_worker SET ended_at = clock_timestamp(), last_seen_at = clock_timestamp(), ended_why = %s
WHERE id = %s AND ended_at IS NULL
"""
MOVED = f"UPDATE rekindle_worker SET incarnation = {INCARNATION} WHERE id = %s"  # noqa: S608


class Liveness(threading.Thread):
    """Registers a worker, then keeps its lock and its heartbeat, apart from everything that may be busy."""

    def __init__(
        self, slots: int, knows: str, *, alone: bool = False, on_death: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(name="rekindle-liveness", daemon=True)
        self._on_death = on_death
        self._closing = False
        self._lock: psycopg.Connection[Any] = connect_engine("rekindle lock")
        row = self._lock.execute(NUMBER).fetchone()
        assert row
        self.worker: int = row[0]
        self.lost = 0  # slots whose bodies do not come back
        here = (
            socket.gethostname()[:200],
            os.getpid(),
            VERSION,
            settings().release,
            slots,
            knows,
            settings().heartbeat,
        )
        # Locked before anybody can see the row: nobody finds it without its lock.
        self._take_lock()
        self._locked = True
        self._lock.execute(REGISTER, [self.worker, *here, alone, behind_pooler()])
        self._beats: psycopg.Connection[Any] = connect_engine("rekindle beat")
        os.register_at_fork(after_in_child=self._let_go)

    def run(self) -> None:
        beat_at = time.monotonic() + settings().heartbeat
        while not self._closing:
            try:
                lost = not self._locked or self._wait_for_loss(beat_at - time.monotonic())
                if self._closing:
                    return
                alive = self._lock_again() if lost else self._beat()
            except AWAY as error:
                log.warning("worker %s cannot show that it lives: %s", self.worker, str(error).strip())
                time.sleep(0.1)
                continue
            beat_at = time.monotonic() + settings().heartbeat
            if not alive:
                log.error(
                    "worker %s was declared dead; it stops and is replaced", self.worker, extra={"worker": self.worker}
                )
                self._on_death()
                return

    def end(self, why: str) -> None:
        """Say goodbye. Whoever misses it finds the lock free."""
        self._closing = True
        self._beats.execute(GOODBYE, [why, self.worker])
        self._lock.close()

    def _wait_for_loss(self, patience: float) -> bool:
        """The lock's connection is silent while it lives; it becomes readable when the server closes it."""
        try:
            return bool(select.select([self._lock.fileno()], [], [], max(0.0, patience))[0])
        except (OSError, ValueError, psycopg.Error):
            return True

    def _lock_again(self) -> bool:
        """Beat first, so that nobody takes us for dead, then take the lock. False: we were ended."""
        self._locked = False  # until we have it, whatever comes between
        self._lock.close()
        self._lock = connect_engine("rekindle lock")
        alive = self._say(self._lock)
        if alive:
            self._take_lock()
            self._lock.execute(MOVED, [self.worker])
            self._locked = True
            log.warning("worker %s had lost its lock and has it again", self.worker, extra={"worker": self.worker})
        return alive

    def _take_lock(self) -> None:
        if not behind_pooler():  # there it would stay with a backend that outlives us
            self._lock.execute(LOCK, [self.worker])

    def _beat(self) -> bool:
        if self._beats.closed:
            self._beats = connect_engine("rekindle beat")
        return self._say(self._beats)

    def _say(self, connection: psycopg.Connection[Any]) -> bool:
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return connection.execute(BEAT, [memory, self.lost, self.worker]).rowcount == 1

    def _let_go(self) -> None:
        """In a forked child: close the descriptor without a goodbye, which would end our parent's session."""
        try:
            os.close(self._lock.fileno())
        except (OSError, psycopg.Error):
            pass

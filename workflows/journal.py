"""The group commit: one thread commits whatever the runs of this process have asked for since its last commit.

A run goes on only when its own write is durable. What cannot be written is sorted out here: a row that somebody has
locked waits for the next batch, a row that is no longer ours stops its run, a value the database refuses is found by
halving, and a commit whose outcome is unknown is looked up on a new connection, never guessed.
"""

import logging
import queue
import threading
import time
from collections import deque
from typing import Any
from uuid import UUID

import psycopg

from .applying import Applied, Asked, apply, verdict
from .conf import settings
from .connections import AWAY, connect_engine
from .errors import Fenced
from .held import Entry, Held, StepKey
from .logs import about
from .zombies import refuse

log = logging.getLogger("rekindle")

MOST = 256  # entries in a commit
LARGEST = 32_000_000  # bytes of their values, before no more is added: a statement has its time-out


class GroupJournal(threading.Thread):
    """See the module. `submit` may be called from any thread."""

    def __init__(self, worker: int) -> None:
        super().__init__(name="rekindle-journal", daemon=True)
        self.worker = worker
        self.contact_lost_at: float | None = None  # since when the database has not answered
        self._ready: queue.SimpleQueue[Held | None] = queue.SimpleQueue()
        self._later: deque[tuple[float, Held, StepKey | None]] = deque()
        self._delay = settings().show_start_after
        self._connection: psycopg.Connection | None = None
        self._closing = False

    # -- asked by runs ----------------------------------------------------------------------------------------------

    def submit(self, held: Held) -> None:
        with held.lock:
            if held.queued:
                return
            held.queued = True
        self._ready.put(held)

    def submit_later(self, held: Held, key: StepKey | None = None) -> None:
        self._later.append((time.monotonic() + self._delay, held, key))

    def apply(self, cursor: Any, asked: Asked) -> Applied:
        return apply(cursor, self.worker, asked)

    def close(self) -> None:
        """Commit what is there and end."""
        self._closing = True
        self._ready.put(None)

    # -- the thread -------------------------------------------------------------------------------------------------

    def run(self) -> None:
        while True:
            asked = self._gather()
            if asked:
                self._commit(asked)
            elif self._closing and self._ready.empty():
                break
        if self._connection:
            self._connection.close()

    def _gather(self) -> list[tuple[Held, Entry]]:
        """Wait until somebody asks, then take everything that was asked meanwhile."""
        asked: list[tuple[Held, Entry]] = []
        size = 0
        while len(asked) < MOST and size < LARGEST:
            self._take_started()
            try:
                held = self._ready.get_nowait() if asked else self._ready.get(timeout=self._patience())
            except queue.Empty:
                break
            if held is None:
                break
            with held.lock:
                held.queued = False
                entry, held.pending = held.pending, None
            if entry:
                asked.append((held, entry))
                size += entry.size
        return asked

    def _patience(self) -> float:
        return max(0.0, self._later[0][0] - time.monotonic()) if self._later else 1.0

    def _take_started(self) -> None:
        """Steps that run longer than a moment get a line of their own; so does what nobody waits for."""
        now = time.monotonic()
        while self._later and self._later[0][0] <= now:
            _, held, key = self._later.popleft()
            if held.pending is not None if key is None else held.opened(key):
                self.submit(held)

    def _commit(self, asked: Asked) -> None:
        for held, entry in asked:
            held.applied += 1
            entry.n = held.applied
        try:
            connection = self._connection or self._connect()
            applied = self.apply(connection.cursor(), asked)
        except Exception as error:
            if _is_trouble(error):
                self._after_trouble(asked, error)
            else:
                self._halve(asked, error)
            return
        left = self._release(asked, applied)
        try:
            if left:
                self._look_again(left)
        except psycopg.Error as error:
            self._after_trouble(left, error)

    def _release(self, asked: Asked, applied: Applied) -> Asked:
        """Let go those whose write is durable. Returns the others: locked by someone, or no longer ours."""
        left = []
        for held, entry in asked:
            if held.id not in applied:
                left.append((held, entry))
                continue
            held.fence += entry.row.get("raises", 0)
            held.nudge(*applied[held.id])
            for waiter in entry.waiters:
                waiter.release()
        return left

    def _look_again(self, left: Asked) -> None:
        present = self._read(left, lock=False)
        for held, entry in left:
            if present.get(held.id, (None,))[:2] == (held.fence, self.worker):
                self._put_back(held, entry)
            else:
                self._refuse(held, entry)
        time.sleep(0.001)  # somebody is busy with those rows

    def _put_back(self, held: Held, entry: Entry) -> None:
        with held.lock:
            if held.pending:
                entry.absorb(held.pending)
            held.pending = entry
        self.submit(held)

    def _refuse(self, held: Held, entry: Entry) -> None:
        refuse(held, self.worker, self._connection)
        held.refuse(Fenced(), entry)

    # -- trouble ----------------------------------------------------------------------------------------------------

    def _halve(self, asked: Asked, error: Exception) -> None:
        if len(asked) > 1:
            middle = len(asked) // 2
            self._commit(asked[:middle])
            self._commit(asked[middle:])
            return
        held, entry = asked[0]
        try:
            stop = verdict(self._connection or self._connect(), held, entry, error)
        except psycopg.Error as trouble:
            self._after_trouble(asked, trouble)
            return
        log.error("a write was refused: %s", error, extra=about(held))
        held.refuse(stop, entry)

    def _after_trouble(self, asked: Asked, error: Exception) -> None:
        """Try until the database answers. If the connection broke, find out first what was written."""
        self.contact_lost_at = self.contact_lost_at or time.monotonic()
        log.warning("the journal waits for the database: %s", str(error).strip())
        broke = self._connection is None or self._connection.closed or not isinstance(error, psycopg.OperationalError)
        pause = 0.05
        while True:
            time.sleep(pause)
            pause = min(pause * 2, 2)
            try:
                if broke:
                    self._connect()
                asked = self._resolve(asked) if broke else asked
                break
            except psycopg.Error:
                broke = True
        self.contact_lost_at = None
        for held, entry in asked:
            self._put_back(held, entry)

    def _resolve(self, asked: Asked) -> Asked:
        """The locking read waits for the old session's transaction, if the server still runs it."""
        present = self._read(asked, lock=True)
        open_still = []
        for held, entry in asked:
            fence, worker, applied = present.get(held.id, (-1, None, 0))
            if fence == held.fence + entry.row.get("raises", 0) and applied >= entry.n:
                held.fence = fence
                for waiter in entry.waiters:
                    waiter.release()
            elif (fence, worker) == (held.fence, self.worker):
                open_still.append((held, entry))
            elif entry.row.get("status"):
                # It has moved on since; whether through our last write or without it, we have no part in it any more.
                held.refuse(Fenced())
                for waiter in entry.waiters:
                    waiter.release()
            else:
                self._refuse(held, entry)
        return open_still

    def _read(self, asked: Asked, *, lock: bool) -> dict[UUID, tuple[int, int | None, int]]:
        query = "SELECT id, fence, worker_id, applied FROM rekindle_workflow WHERE id = ANY(%s) ORDER BY id"
        connection = self._connection or self._connect()
        with connection.transaction():
            rows = connection.execute(
                query + " FOR NO KEY UPDATE" if lock else query, [[held.id for held, _ in asked]]
            ).fetchall()
        return {pk: (fence, worker, applied) for pk, fence, worker, applied in rows}

    def _connect(self) -> psycopg.Connection:
        if self._connection:
            self._connection.close()
        self._connection = connect_engine("rekindle journal", by_key=True)
        return self._connection


def _is_trouble(error: Exception) -> bool:
    """The database is away, busy or read-only: nobody's write is at fault. (Class 54: one is too large for it.)"""
    return isinstance(error, AWAY) and not (error.sqlstate or "").startswith("54")

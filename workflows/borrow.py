"""Many bodies, few connections: the threads of a worker process borrow from one small pool per database alias.

Django gives every thread a connection of its own, too many with 64 bodies; its native pool lends one for as long, and
fails whoever waits (PoolTimeout). Here a body's `connections[alias]` holds nothing: a statement borrows and gives back
as soon as its result is in the client; `atomic` borrows for the outermost block. A thread never holds two of one alias;
who finds none free queues, first come first served, without limit, until the process stops.

What needs one particular connection keeps it: a server-side cursor, or a cursor asked for `copy`, `stream` or
`connection`, until closed; a BEGIN written by hand until its end; `ensure_connection()` and statements that change the
session (SET, LISTEN, PREPARE) until the body ends. What is still kept then is closed, never lent on.
Not seen, as behind PgBouncer: `set_config`, session advisory locks, temporary tables; call `ensure_connection()` first.

Borrow after the fork, not before. Left as Django has them: databases other than PostgreSQL, aliases with AUTOCOMMIT
off, backends with a `_cursor` of their own (django-tenants). `OPTIONS["pool"]` is not used: this is the pool.
"""

import re
import select
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from threading import Event, Lock, get_ident
from typing import Any

import psycopg
from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.postgresql.base import DatabaseWrapper
from psycopg.pq import TransactionStatus

from .connections import KEEPALIVES
from .errors import Interrupted

LOOK_UP = 0.2  # how often those who queue look whether the process stops
PATIENCE = 60  # how long a database that has answered before may be away; nothing was sent yet, so waiting is safe
ASK_AFTER = 10  # with CONN_HEALTH_CHECKS, a connection idle for longer is asked before it is lent
SESSION = {"SET", "RESET", "DISCARD ALL", "LISTEN", "PREPARE", "LOAD", "DECLARE CURSOR"}  # tags of what leaves a trace
PASSING = re.compile(r"\s*SET\s+(LOCAL|TRANSACTION)\b", re.IGNORECASE)  # also tagged SET; gone with the transaction
AT_REST = {TransactionStatus.IDLE, TransactionStatus.UNKNOWN}  # unknown is broken: the pool replaces it

Lent = Any  # an ordinary wrapper of Django's, open; Any, because the stubs leave out most of what is needed here
Configure = Callable[[Any], object]  # gets psycopg's connection


class Pool:
    """The places of one alias: each holds an open connection, or None for one not opened yet."""

    def __init__(self, alias: str, size: int, configure: Configure | None, stopping: Event) -> None:
        self.alias, self.configure, self.stopping = alias, configure, stopping
        self.free: list[Lent | None] = [None] * size  # taken from the end: the warm ones first
        self.queue: deque[SimpleQueue[Lent | None]] = deque()
        self.lock = Lock()
        self.answered = self.closed = False

    def take(self) -> Lent:
        lent = self._place()
        try:
            if lent is not None and not _alive(lent):
                lent.close()
                lent = None
            return lent or self._open()
        except BaseException:
            self.put(None)
            raise

    def put(self, lent: Lent | None) -> None:
        """Straight into the hands of whoever waits longest: a body in a tight loop would be back before they wake."""
        if lent is not None:
            lent.idle_since = time.monotonic()
            if self.closed or lent.connection.closed:
                lent.close()
                lent = None
        with self.lock:
            if self.queue:
                self.queue.popleft().put(lent)
            else:
                self.free.insert(0 if lent is None else len(self.free), lent)

    def close(self) -> None:
        with self.lock:
            self.closed, idle, self.free = True, self.free, [None] * len(self.free)
        for lent in filter(None, idle):
            lent.close()

    def _place(self) -> Lent | None:
        with self.lock:
            if self.free:
                return self.free.pop()
            turn: SimpleQueue[Lent | None] = SimpleQueue()
            self.queue.append(turn)
        while True:
            try:
                return turn.get(timeout=LOOK_UP)
            except Empty:
                self._leave_if_stopping(turn)

    def _leave_if_stopping(self, turn: SimpleQueue[Lent | None]) -> None:
        with self.lock:
            if self.stopping.is_set() and turn in self.queue:  # otherwise a place is already in its hands
                self.queue.remove(turn)
                raise Interrupted(f"The worker is stopping, and no connection to '{self.alias}' came free.")

    def _open(self) -> Lent:
        give_up, pause = time.monotonic() + PATIENCE, 0.05
        while True:
            try:
                return self._connect()
            except OperationalError:
                if not self.answered or time.monotonic() > give_up:
                    raise
            if self.stopping.wait(pause):
                raise Interrupted(f"The worker is stopping, and the database '{self.alias}' does not answer.")
            pause = min(2 * pause, 1)

    def _connect(self) -> Lent:
        """Django's whole ceremony, once. Who hears its signal may ask for `connections[alias]`, and means this one."""
        new: Lent = connections.create_connection(self.alias)
        new.settings_dict = _without_pool(new.settings_dict)
        new.settings_dict["OPTIONS"] = KEEPALIVES | new.settings_dict["OPTIONS"]
        new.inc_thread_sharing()
        borrower = connections[self.alias]
        connections[self.alias] = new
        try:
            new.ensure_connection()
            if self.configure:
                self.configure(new.connection)
        except BaseException:
            new.close()
            raise
        finally:
            connections[self.alias] = borrower
        self.answered = True
        return new


class Borrower(DatabaseWrapper):
    """A body's `connections[alias]`: Django's own, but `connect` borrows, and it gives back as early as it may."""

    lender: Pool
    _thread_ident: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lent: Lent | None = None
        self.keepers: set[object] = set()  # who needs this very connection
        self.forgotten: deque[Cursor] = deque()  # to be closed at a better moment

    def connect(self) -> None:
        self.in_atomic_block = self.needs_rollback = self.closed_in_transaction = self.errors_occurred = False
        self.savepoint_ids, self.atomic_blocks, self.run_on_commit = [], [], []
        self.lent = self.lender.take()
        self.connection, self.autocommit = self.lent.connection, True

    def borrow(self) -> None:
        if self.connection is None:
            super().ensure_connection()

    def ensure_connection(self) -> None:
        if self.connection is None:  # so it is the body that asks, and is going to use `connection.connection`
            self.keep("the body")

    def keep(self, keeper: object) -> None:
        self.keepers.add(keeper)
        try:
            self.borrow()
        except BaseException:
            self.keepers.discard(keeper)
            raise

    def let_go(self, keeper: object) -> None:
        if keeper in self.keepers:
            self.keepers.discard(keeper)
            if self.in_own_thread():
                self.give_back()

    def in_own_thread(self) -> bool:
        return self._thread_ident == get_ident()

    def close_forgotten(self) -> None:
        for _ in range(len(self.forgotten)):
            with suppress(psycopg.Error):
                self.forgotten.popleft().close()

    def give_back(self) -> None:
        if self.lent is None or self.keepers or self.in_atomic_block or not self.autocommit:
            return
        if self.connection.pgconn.transaction_status in AT_REST:
            lent, self.lent, self.connection = self.lent, None, None
            self.lender.put(lent)

    def get_autocommit(self) -> bool:
        return self.connection is None or self.autocommit

    def set_autocommit(self, autocommit: bool, *args: Any, **kwargs: Any) -> None:
        if autocommit and self.connection is None:  # it broke inside the block: no reason to wait for another one
            return
        try:
            self.keep("a change of autocommit")
            super().set_autocommit(autocommit, *args, **kwargs)
        finally:
            self.let_go("a change of autocommit")

    def _set_autocommit(self, autocommit: bool) -> None:
        super()._set_autocommit(autocommit)  # type: ignore[misc]
        self.autocommit = autocommit
        self.let_go("a change of autocommit")  # before the on_commit functions, which may take their time

    def _close(self) -> None:
        self.keepers.clear()
        if self.lent is not None:
            lent, self.lent = self.lent, None
            lent.close()
            self.lender.put(None)

    def _cursor(self, name: str | None = None) -> Any:
        if self.connection is None:  # a block that lost its connection is over; Django says so when it reconnects
            self.needs_rollback = False
        return self._prepare_cursor(Cursor(self, name))  # type: ignore[attr-defined]

    @contextmanager
    def temporary_connection(self) -> Iterator[Any]:
        with super().temporary_connection() as cursor:
            self.keep(cursor.cursor)  # Django reads self.connection inside
            yield cursor


def _statement(verb: str) -> Callable[..., Any]:
    def run(self: "Cursor", query: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            self.db.keep("a statement")
            raw = self.kept() if self.name else self.fresh()
            answer = getattr(raw, verb)(query, *args, **kwargs)
            if raw.statusmessage in SESSION and not self.name and not PASSING.match(str(query)):
                self.db.keep("its session")
            return self if answer is raw else answer
        finally:
            self.db.close_forgotten()
            self.db.let_go("a statement")

    return run


class Cursor:
    """What Django's cursor wraps: psycopg's, made anew when the connection has gone back. The last result stays."""

    __slots__ = ("db", "name", "raw")

    def __init__(self, db: Borrower, name: str | None) -> None:
        self.db, self.name = db, name
        self.raw: Any = None

    execute = _statement("execute")
    executemany = _statement("executemany")
    callproc = _statement("callproc")

    def copy(self, *args: Any, **kwargs: Any) -> Any:
        return self.kept().copy(*args, **kwargs)

    def stream(self, *args: Any, **kwargs: Any) -> Any:
        return self.kept().stream(*args, **kwargs)

    @property
    def connection(self) -> Any:
        self.db.keep(self)
        return self.db.connection

    def close(self) -> None:
        if self.name and self.raw is not None and self._untimely():
            self.db.forgotten.append(self)
            return
        try:
            if self.raw is not None:
                self.raw.close()
        finally:
            self.db.let_go(self)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.raw or self.kept())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw or self.kept(), name)

    def _untimely(self) -> bool:
        """The garbage collector closes a forgotten iterator in any thread, and even in the middle of a statement, where
        psycopg would wait for its own lock for ever. In a failed transaction the server would not hear of it."""
        connection = self.raw.connection
        failed = connection.pgconn.transaction_status == TransactionStatus.INERROR
        return failed or connection.lock.locked() or not self.db.in_own_thread()

    def kept(self) -> Any:
        self.db.keep(self)
        return self.fresh()

    def fresh(self) -> Any:
        if self.raw is None or self.raw.connection is not self.db.connection:
            self.raw = self.db.create_cursor(self.name)
        return self.raw


class Borrowing:
    """The pools of one worker process. `configure` gets every new psycopg connection; `stopping` ends all waiting."""

    def __init__(self, size: int = 8, configure: Configure | None = None, stopping: Event | None = None) -> None:
        self.borrowers: dict[str, type[Borrower]] = {}
        for alias in connections:
            ordinary = connections.create_connection(alias)
            if _can_borrow(ordinary):
                lender = Pool(alias, size, configure, stopping or Event())
                self.borrowers[alias] = type("Borrower", (Borrower, type(ordinary)), {"lender": lender})

    @contextmanager
    def lend(self) -> Iterator[Callable[[], None]]:
        """For a thread, while it runs a body. If it runs one after the other, it calls what it is given after each."""
        before: dict[str, Any] = {ordinary.alias: ordinary for ordinary in connections.all(initialized_only=True)}
        if any(isinstance(ordinary, Borrower) for ordinary in before.values()):
            yield lambda: None  # a body within a body shares: a thread that holds one must not wait for a second
            return
        settings = connections.settings
        borrowers = {alias: kind(_without_pool(settings[alias]), alias) for alias, kind in self.borrowers.items()}
        for alias, borrower in borrowers.items():
            connections[alias] = borrower

        def end_of_body() -> None:
            for borrower in borrowers.values():
                if borrower.lent is not None:
                    borrower.close()

        try:
            yield end_of_body
        finally:
            for alias, borrower in borrowers.items():
                if alias in before:
                    connections[alias] = before[alias]
                else:
                    del connections[alias]
                borrower._close()

    def close(self) -> None:
        """Idle connections are closed now, lent ones when they come back."""
        for kind in self.borrowers.values():
            kind.lender.close()


def _can_borrow(ordinary: Any) -> bool:
    if not isinstance(ordinary, DatabaseWrapper) or ordinary.vendor != "postgresql":
        return False
    return bool(ordinary.settings_dict["AUTOCOMMIT"]) and type(ordinary)._cursor is BaseDatabaseWrapper._cursor  # type: ignore[attr-defined]


def _alive(lent: Lent) -> bool:
    """Mostly without a round trip: an idle socket with something to read holds the server's goodbye, or a notice."""
    now, settings = time.monotonic(), lent.settings_dict
    if lent.connection.closed or (settings["CONN_MAX_AGE"] and now >= lent.close_at):
        return False
    look = select.poll()
    look.register(lent.connection.fileno(), select.POLLIN)
    doubtful = look.poll(0) or (settings["CONN_HEALTH_CHECKS"] and now - lent.idle_since > ASK_AFTER)
    return not doubtful or bool(lent.is_usable())


def _without_pool(settings: dict[str, Any]) -> dict[str, Any]:
    return settings | {"OPTIONS": {name: value for name, value in settings["OPTIONS"].items() if name != "pool"}}

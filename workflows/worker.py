"""A worker process: claims due workflows, runs them in threads, wakes precisely, hands back when it is told to stop."""

import json
import logging
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import psycopg
from django.db import connections

from . import logs
from .borrow import Borrowing
from .claiming import Claimer
from .conf import settings
from .connections import AWAY, behind_pooler, configure_body, configure_look_out, connect_engine
from .crew import ThreadCrew, take_turns
from .definitions import discover
from .executing import execute
from .held import Held
from .journal import GroupJournal
from .liveness import Liveness
from .notify import CHANNEL, DUE
from .overrun import Overruns
from .supervisor import STOP
from .takeover import give_up
from .zombies import refuse

log = logging.getLogger("rekindle")

HELPERS = 64  # threads for parallel branches, beside those that run workflows
SELDOM = 1.0  # how often to look after the rest, where workers do not look out for the dead
PAUSE = 0.05  # before the first try to reach the database again; it doubles until a turn succeeds
GATHER = 0.008  # how long to let freed slots gather before the next claim

lookouts: list[Callable[[], float]] = []  # what else a worker looks after, and when again; recovery adds its sweep


class Supervised(Protocol):
    """What a worker tells whoever started it."""

    def beat(self) -> None:
        """Not hung. Called often."""

    def ask_for_lone(self) -> None:
        """There is work that has to run alone."""


class Worker:
    """One process. `run()` returns when it has been stopped and everything is handed back."""

    def __init__(self, concurrency: int, supervisor: "Supervised", *, alone: bool = False) -> None:
        self.concurrency = concurrency
        self.alone = alone  # runs one workflow that may kill its process, and ends when there is no such work
        self.stopping = threading.Event()
        self._gone = threading.Event()  # the grace is over: nobody waits for a connection any more
        self._supervisor = supervisor
        self._definitions = discover()
        self._held: dict[Any, Held] = {}
        self._slots = threading.Lock()
        self._ended_why = "stopped"
        self._freed = False
        self._unheard: set[str] = set()  # ids of those on which somebody acted without a wake-up
        self._hungry = True
        self._bell_out, self._bell_in = os.pipe()
        os.set_blocking(self._bell_in, False)
        os.set_blocking(self._bell_out, False)

    # -- life -------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        self._connection = connect_engine("rekindle claim", by_key=True)
        knows = {name: [one.version, one.fingerprint] for name, one in self._definitions.items()}
        self._liveness = Liveness(self.concurrency, json.dumps(knows), alone=self.alone, on_death=self._be_dead)
        self._liveness.start()
        self.number = self._liveness.worker
        self._journal = GroupJournal(self.number)
        self._journal.start()
        self._borrowing = Borrowing(settings().body_connections, configure_body, self._gone)
        self._crew = ThreadCrew(HELPERS, self._borrowing.lend)
        self._claimer = Claimer(self._connection, self.number, self._journal, self._definitions, self.alone)
        if settings().startup_sweep and not self.alone:
            _look_out(lookouts)
        threading.Thread(target=self._watch, name="rekindle-watch", daemon=True).start()
        self._listen()
        log.info("worker %s started with %s slots", self.number, self.concurrency, extra={"worker": self.number})
        while not self.stopping.is_set():
            self._survive(self._turn)
        self._hand_back()

    def stop(self, *_: object) -> None:
        self.stopping.set()
        self._ring()

    def _survive(self, turn: Callable[[], None]) -> None:
        """The database may go away for a while; a worker does not."""
        try:
            turn()
            self._pause = PAUSE
        except AWAY as error:
            log.warning("the worker waits for the database: %s", str(error).strip())
            self._reconnect()

    def _reconnect(self) -> None:
        while not self.stopping.wait(self._pause):
            self._pause = min(self._pause * 2, 1)
            self._supervisor.beat()
            try:
                self._connection.close()
                self._connection = self._claimer.connection = connect_engine("rekindle claim", by_key=True)
                self._give_back_at = 0.0
                self._listen()
                return
            except AWAY as error:
                log.debug("the worker still waits for the database: %s", error)

    # -- one turn of the loop ---------------------------------------------------------------------------------------

    def _turn(self) -> None:
        if not self._journal.is_alive():
            raise RuntimeError("the journal has ended: nothing can be written here any more, so this process ends")
        if not self._liveness.is_alive() and not self.stopping.is_set():
            raise RuntimeError("nobody shows any more that this process lives, so it ends")
        self._supervisor.beat()
        self._look_for_lone_work()
        self._hear_unheard()
        self._give_back_unheard()
        self._replace_if_lost()
        free = self._free()
        if free > 0 and self._due_now(free):
            claimed = self._claimer.claim(free)
            self._hungry = len(claimed) >= free
            for held in claimed:
                self._begin(held)
            self._next = time.monotonic() + self._patience(claimed)
        self._wait()

    def _due_now(self, free: int) -> bool:
        if self._hungry and free < self.concurrency // 4:
            time.sleep(GATHER)  # a claim costs a commit: let a few slots gather
        return self._hungry or time.monotonic() >= self._next

    _pause = PAUSE
    _next = 0.0
    _look_at = 0.0
    _give_back_at = 0.0

    def _patience(self, claimed: list[Held]) -> float:
        """Until the next one is due, at most until the next poll."""
        if claimed:
            return 0.0
        due = self._claimer.next_due()
        return settings().poll if due is None else min(settings().poll, max(0.0, due))

    def _wait(self) -> None:
        full = self._free() <= 0
        patience = settings().poll if full else 0.0 if self._hungry else max(0.0, self._next - time.monotonic())
        if not full and self._hungry:
            return
        ready, _, _ = select.select([self._connection.fileno(), self._bell_out], [], [], patience)
        if self._bell_out in ready:
            os.read(self._bell_out, 4096)
            self._freed = False
        if self._connection.fileno() in ready:
            self._hear()

    def _hear(self) -> None:
        for notice in self._connection.notifies(timeout=0):
            if notice.payload == DUE:
                self._next = 0.0
            elif (held := self._held.get(notice.payload)) is not None:
                self._claimer.refresh(held)

    def _hear_later(self, held: Held) -> None:
        """Somebody acted on it, and no wake-up came. Only the loop may use its connection."""
        self._unheard.add(str(held.id))
        self._ring()

    def _hear_unheard(self) -> None:
        while self._unheard:
            if (held := self._held.get(self._unheard.pop())) is not None:
                self._claimer.refresh(held)

    def _look_for_lone_work(self) -> None:
        """Some work has to run alone: ask the supervisor for a process that does nothing else. That one ends without it."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + (settings().sweep_every or SELDOM)
        if not self.alone:
            if self._claimer.somebody_must_run_alone():
                self._supervisor.ask_for_lone()
        elif not self._held and not self._claimer.somebody_must_run_alone():
            self.stop()

    def _give_back_unheard(self) -> None:
        """Again and again: the server may commit a claim some time after its connection broke."""
        if time.monotonic() < self._give_back_at:
            return
        self._give_back_at = time.monotonic() + settings().heartbeat
        if unheard := self._claimer.give_back_unheard([held.id for held in list(self._held.values())]):
            log.warning("worker %s gave back %s workflows that it did not know it held", self.number, unheard)

    def _be_dead(self) -> None:
        """Somebody declared us dead: whatever we hold is no longer ours."""
        for held in list(self._held.values()):
            refuse(held, self.number, self._connection)
        self.stop()

    # -- running ----------------------------------------------------------------------------------------------------

    def _begin(self, held: Held) -> None:
        before = self._held.get(str(held.id))
        if before is not None:
            self._leave_behind(before)  # ours again, before its last run here has come back
        self._held[str(held.id)] = held
        self._crew.hire(lambda: self._run_one(held))

    def _run_one(self, held: Held) -> None:
        try:
            outcome = execute(held, self._crew)
            if outcome in ("paused", "handed back"):
                self._next = 0.0  # it may be due before the next poll
            elif outcome == "fenced" and not self.stopping.is_set():
                refuse(held, self.number, self._connection)  # an atomic step is refused without the journal's knowing
        except BaseException:
            log.exception("running %s met something it should not", held.name, extra=logs.about(held, held.last_step))
            give_up(held.id, self.number, held.fence, "corrupt_state")
        finally:
            self._crew.returned(held.returned)
            self._remove(held)
            self._ring()

    def _remove(self, held: Held) -> None:
        with self._slots:
            if self._held.get(str(held.id)) is held:
                del self._held[str(held.id)]

    # -- bodies that do not come back -------------------------------------------------------------------------------

    def _leave_behind(self, held: Held) -> None:
        """Its workflow is no longer ours, its body still runs: it is not held any more, but its slot is lost."""
        self._crew.lost(held.returned)
        self._remove(held)

    def _free(self) -> int:
        return self.concurrency - len(self._held) - self._crew.count_lost()

    def _replace_if_lost(self) -> None:
        """Hand back the rest and be replaced, once no slot is left, or half of them are lost for good.

        Lost bodies may also sit on the connections that all bodies share, so the smaller number counts. One that was
        lost a moment ago may merely be slow, so only those count that have been gone for as long as a hung process may.
        """
        self._liveness.lost = lost = self._crew.count_lost()
        for_good = self._crew.count_lost(settings().hang_after) if lost else 0
        many = max(1, min(self.concurrency, settings().body_connections) // 2)
        if lost >= self.concurrency or for_good >= many:
            facts = {"worker": self.number, "lost": lost, "slots": self.concurrency}
            log.error("worker %s lost %s of %s slots; it is replaced", *facts.values(), extra=facts)
            self._ended_why = "lost slots"
            self.stop()

    def _ring(self) -> None:
        if not self._freed:
            self._freed = True
            try:
                os.write(self._bell_in, b"!")
            except BlockingIOError:
                pass

    def _listen(self) -> None:
        if not behind_pooler():  # there only the poll brings news
            self._connection.execute(f"LISTEN {CHANNEL}")
        self._next, self._hungry = 0.0, True

    def _watch(self) -> None:
        """Look out for the dead, for what overruns, and whatever else recovery asked for, on a thread of its own."""
        overruns = Overruns(self.number, self._held, self._leave_behind, self._hear_later)
        everything = [overruns.look] if self.alone else [*lookouts, overruns.look]
        pause = settings().sweep_every or SELDOM
        while not self.stopping.wait(pause):
            pause = _look_out(everything)

    # -- stopping ---------------------------------------------------------------------------------------------------

    def _hand_back(self) -> None:
        """Claim nothing more, let running steps end within the grace, give the rest back, and be gone."""
        for held in list(self._held.values()):
            held.stopping = True
            with held.lock:
                held.changed.notify_all()
        end = time.monotonic() + settings().grace
        while self._held and time.monotonic() < end:
            self._supervisor.beat()
            time.sleep(0.01)
        self._gone.set()
        for held in list(self._held.values()):
            if held.hand_back():
                logs.ended(held, "handed back")
        self._journal.close()
        self._journal.join(timeout=10)
        try:
            self._liveness.end(self._ended_why)
        except psycopg.Error as error:
            log.warning("worker %s could not say goodbye: %s", self.number, error)
        log.info("worker %s stopped", self.number, extra={"worker": self.number})


def _look_out(everything: list[Callable[[], float]]) -> float:
    """Returns after how many seconds to look again."""
    pause = settings().sweep_every or SELDOM
    for lookout in everything:
        try:
            configure_look_out()
            pause = min(pause, lookout())
        except Exception as error:
            log.warning("the look-out %s failed: %s", getattr(lookout, "__name__", lookout), error)
            connections.close_all()
    return pause


def work_here(concurrency: int, supervisor: Supervised, *, alone: bool = False) -> None:
    """Be a worker until SIGTERM. The process ends with it: a body that hangs must not keep it."""
    take_turns()
    worker = Worker(concurrency, supervisor, alone=alone)
    for number in STOP:
        signal.signal(number, worker.stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP)  # whoever forked us did so with ears shut
    worker.run()

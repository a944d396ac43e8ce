"""`manage.py work`: keeps N worker processes, and replaces those that die or hang."""

import gc
import logging
import os
import select
import signal
import time
from dataclasses import dataclass, field

from django.db import connections

from .conf import settings
from .definitions import discover

log = logging.getLogger("rekindle")

STOP = (signal.SIGTERM, signal.SIGINT)
QUICK = 5.0  # a child that lived shorter than this is replaced with a pause
PATIENT = 10.0  # beyond the grace, before a child that does not stop is killed
LONE = 2  # processes at a time that each run one workflow alone
ASKED = b"L"  # what a child says when there is work that has to run alone

# Children whose end was seen here, and when, by the monotonic clock. A replacement is forked with it: nobody knows
# better how long the one before it has been dead.
buried: dict[int, float] = {}
BURIED = 100  # are remembered


@dataclass
class Child:
    """A worker process, and the pipe on which it says that it is not hung."""

    pid: int
    pipe: int
    alone: bool = False
    born: float = field(default_factory=time.monotonic)
    heard: float = field(default_factory=time.monotonic)


class Supervisor:
    """Forks children from a parent that has one thread and no connection, so a replacement is there in milliseconds."""

    def __init__(self, processes: int, concurrency: int) -> None:
        self.processes, self.concurrency = processes, concurrency
        self.children: dict[int, Child] = {}
        self.stopping = False
        self._life_out, self._life_in = os.pipe()  # ours while we live: children see its end when we die
        self._not_before = 0.0

    def run(self) -> None:
        discover()
        connections.close_all()
        gc.collect()
        gc.freeze()
        for number in STOP:
            signal.signal(number, self._stop)
        while not self.stopping:
            while self._count(alone=False) < self.processes and time.monotonic() >= self._not_before:
                self._fork()
            self._listen(0.2)
            self._bury()
            self._kill_hung()
        self._end_children()

    def _stop(self, *_: object) -> None:
        self.stopping = True

    def _count(self, *, alone: bool) -> int:
        return sum(child.alone is alone for child in self.children.values())

    def _fork(self, *, alone: bool = False) -> None:
        out, into = os.pipe()
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP)  # the child hears it as soon as it has ears of its own
        pid = os.fork()
        if pid == 0:
            self._be_child(into, [out, self._life_in, *(child.pipe for child in self.children.values())], alone)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP)
        os.close(into)
        self.children[pid] = Child(pid, out, alone)

    def _be_child(self, pipe: int, not_ours: list[int], alone: bool) -> None:
        code = 1
        try:
            for descriptor in not_ours:
                os.close(descriptor)
            os.set_blocking(pipe, False)
            from .worker import work_here

            work_here(1 if alone else self.concurrency, Tie(pipe, self._life_out), alone=alone)
            code = 0
        except BaseException:
            log.exception("a worker process failed")
        finally:
            logging.shutdown()
            os._exit(code)

    def _listen(self, patience: float) -> None:
        pipes = {child.pipe: child for child in self.children.values()}
        ready, _, _ = select.select(list(pipes), [], [], patience)
        for pipe in ready:
            if said := os.read(pipe, 4096):
                pipes[pipe].heard = time.monotonic()
                if ASKED in said and self._count(alone=True) < LONE and not self.stopping:
                    self._fork(alone=True)
            else:
                time.sleep(0.01)  # it is ending; the next look buries it

    def _bury(self) -> None:
        for child in list(self.children.values()):
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                os.close(child.pipe)
                del self.children[pid]
                _remember(pid)
                if not self.stopping and not (child.alone and status == 0):
                    log.warning(
                        "worker process %s ended (%s)%s", pid, _how(status), "" if child.alone else "; it is replaced"
                    )
                    if time.monotonic() - child.born < QUICK and not child.alone:
                        self._not_before = time.monotonic() + 1

    def _kill_hung(self) -> None:
        for child in self.children.values():
            if time.monotonic() - child.heard > settings().hang_after:
                log.error("worker process %s has not answered for %s s; it is killed", child.pid, settings().hang_after)
                child.heard = time.monotonic()
                os.kill(child.pid, signal.SIGKILL)

    def _end_children(self) -> None:
        self._signal(signal.SIGTERM)
        end = time.monotonic() + settings().grace + PATIENT
        while self.children and time.monotonic() < end:
            self._listen(0.05)
            self._bury()
        self._signal(signal.SIGKILL)
        while self.children:
            self._bury()
            time.sleep(0.01)

    def _signal(self, number: signal.Signals) -> None:
        for child in self.children.values():
            os.kill(child.pid, number)


class Tie:
    """Held by the child: tells the supervisor that we are not hung and what we need, and stops us when it is gone."""

    def __init__(self, pipe: int, life: int) -> None:
        self._pipe, self._life = pipe, life
        self._next = 0.0

    def beat(self) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + 0.5
        self._say(b".")
        if select.select([self._life], [], [], 0)[0]:
            os.kill(os.getpid(), signal.SIGTERM)

    def ask_for_lone(self) -> None:
        self._say(ASKED)

    def _say(self, word: bytes) -> None:
        try:
            os.write(self._pipe, word)
        except BlockingIOError:
            pass
        except BrokenPipeError:
            os.kill(os.getpid(), signal.SIGTERM)


def _remember(pid: int) -> None:
    buried.pop(pid, None)
    buried[pid] = time.monotonic()
    if len(buried) > BURIED:
        del buried[next(iter(buried))]


def _how(status: int) -> str:
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"

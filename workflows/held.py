"""A workflow in the hands of this process: what is recorded of it, and what its paths ask the journal to write.

Everything a run writes goes through `Held.write`. What was asked since the last commit is one `Entry`: however many
paths ask, the row is changed once and its events are numbered once.
"""

import json
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from .definitions import Definition
from .errors import FINAL, Dropped, Fenced, Interrupted, Stop

StepKey = tuple[str, int]  # path and position

HEAVY = 4_000_000  # bytes: as much as this is written also where persistence is lazy, and no commit is much larger

# What most steps have in common is not told to the database: it reads, and we write, half the text.
USUAL = {
    "path": ".",
    "occurrence": 1,
    "kind": "step",
    "response": "",
    "failures": 0,
    "on_crash": "rerun",
    "idempotent": False,
    "basket": "",
    "wake_in": None,
}


@dataclass(slots=True)
class Recorded:
    """What is known of a step: the columns of its row that replay and retry need."""

    path: str
    position: int
    name: str
    occurrence: int = 1
    kind: str = "step"
    status: str = "open"
    response: str = ""
    attempt: int = 0
    failures: int = 0
    on_crash: str = "rerun"
    idempotent: bool = False
    fence: int = 0
    basket: str = ""
    result: Any = None
    error: dict[str, Any] | None = None
    wake_at: datetime | None = None  # an absolute deadline
    wake_in: float | None = None  # or one counted from the write
    due: float | None = None  # the same on this process's monotonic clock, never early

    @property
    def key(self) -> StepKey:
        return self.path, self.position

    @property
    def ended(self) -> bool:
        return self.status in ("done", "failed")

    def waits(self) -> bool:
        """Still waiting: for a time that has not come, or for someone."""
        if self.status != "waiting":
            return False
        return time.monotonic() < self.due if self.due is not None else True


@dataclass(slots=True)
class Entry:
    """What one workflow asks of one commit."""

    row: dict[str, Any] = field(default_factory=dict)
    steps: dict[StepKey, dict[str, Any]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    signals: list[dict[str, Any]] = field(default_factory=list)
    waiters: list["Waiter"] = field(default_factory=list)
    size: int = 0  # bytes of its values, roughly
    n: int = 0
    fence: int | None = None  # if it counts only under the fence of its own beginning

    def absorb(self, newer: "Entry") -> None:
        self.row.update(newer.row)
        self.steps.update(newer.steps)
        for event in newer.events:
            self.events.append(event | {"k": len(self.events) + 1})
        self.signals += newer.signals
        self.waiters += newer.waiters
        self.size += newer.size


class Waiter:
    """Someone who goes on only when his write is durable."""

    __slots__ = ("_gate", "error")

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._gate.acquire()
        self.error: BaseException | None = None

    def release(self, error: BaseException | None = None) -> None:
        self.error = error
        self._gate.release()

    def wait(self) -> None:
        self._gate.acquire()
        if self.error:
            raise self.error


class Journal(Protocol):
    """Where writes become durable: the group commit of a worker, or the caller's own connection."""

    worker: int

    def submit(self, held: "Held") -> None:
        """Commit what `held` has pending, soon; its waiters are released when it is durable."""

    def submit_later(self, held: "Held", key: StepKey | None = None) -> None:
        """Commit it with whatever comes next, or in a moment. With a key: that step's start, unless it ends first."""

    def apply(self, cursor: Any, asked: Any) -> dict[UUID, Any]:
        """Write it now, in the transaction of that cursor. Returns what was written."""


class Held:
    """One claimed workflow. Its lock guards what is pending; `changed` wakes paths that wait for one another."""

    def __init__(self, row: dict[str, Any], definition: Definition, journal: Journal) -> None:
        self.id: UUID = row["id"]
        self.name: str = row["name"]
        self.key: str | None = row["key"]
        self.version: int = row["version"]
        self.generation: int = row["generation"]
        self.fence: int = row["fence"]
        self.input: dict[str, Any] = row["input"]
        self.variables: dict[str, Any] = row["variables"]
        self.stored_variables = self.variables  # as they were last read
        self.ticket: str = row["ticket"]
        self.recovery_attempts: int = row["recovery_attempts"]
        self.max_recovery_attempts: int = row["max_recovery_attempts"]
        self.suspects: set[str] = set(row["suspects"] or ())
        self.best_progress: float = (row["progress"] or {}).get("done") or 0
        self.nudges: int = row["nudges"]
        self.asked: dict[str, Any] | None = row["asked"]
        self.due_at: datetime = row["due_at"]
        self.definition = definition
        self.journal = journal
        # After a crash every start is durable before its body, so that the step which kills workers has a name.
        self.careful = self.recovery_attempts > 0
        self.lazy = row["persistence"] == "lazy" and not self.careful
        self.claimed_at = time.monotonic()
        self.is_recovery: bool = row["before"] == "running"
        self.is_first: bool = not row["has_steps"]
        self.claimed_by_clock: datetime = row["db_now"]  # the database's

        self.paths: dict[str, list[Recorded]] = defaultdict(list)
        self.inbox: list[dict[str, Any]] = []
        self.taken: set[int] = set()  # signals of which the database may not know yet that they were read
        self.opening: dict[StepKey, float] = {}  # starts that are not worth a line of their own yet
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.epoch = 0  # goes up with a ticket: paths of an older one are dropped
        self.applied = 0
        self.pending: Entry | None = None
        self.queued = False
        self.stop: Stop | None = None
        self.refusal_told = False  # a zombie is told once, however many of its writes are refused
        self.stopping = False  # the worker is shutting down
        self.leaving = False  # it has asked for its own end or pause
        self.returned = threading.Event()  # its thread is free again
        self.overruns = 0  # how often it was told that it is held for longer than its run limit
        self.last_step = ""
        self.flaw = ""  # why what is stored cannot be read

    # -- time -----------------------------------------------------------------------------------------------------

    def due(self, wake_at: datetime) -> float:
        """When that moment of the database's clock is reached on our monotonic clock; never early."""
        return self.claimed_at + (wake_at - self.claimed_by_clock).total_seconds()

    # -- writing --------------------------------------------------------------------------------------------------

    def write(
        self,
        *,
        step: Recorded | None = None,
        seconds: float = 0,
        result: str | None = None,
        error: str | None = None,
        event: str = "",
        data: str | None = None,
        variables: str | None = None,
        signal: int | None = None,
        row: dict[str, Any] | None = None,
        durable: bool = True,
        epoch: int | None = None,
    ) -> None:
        """Ask for a change; when `durable`, return only after it is committed."""
        waiter = Waiter() if durable or self._is_heavy() else None
        with self.lock:
            entry = self._entry(epoch)
            if step is not None:
                self._record(entry, step, step.status, seconds, result, error)
            if event:
                self._tell(entry, event, step, seconds, data)
            if row:
                entry.row.update(row)
                self.leaving = self.leaving or "status" in row
            if variables:
                entry.row["variables"] = _merge(entry.row.get("variables"), variables)
                entry.size += len(variables)
            if signal is not None and step is not None:
                entry.signals.append({"id": signal, "workflow": str(self.id), "consumed_by": step.path})
            if waiter:
                entry.waiters.append(waiter)
        if waiter:
            self.journal.submit(self)
            waiter.wait()
        elif not self.lazy:
            self.journal.submit_later(self)
        if step is not None and step.wake_in is not None:
            step.due = time.monotonic() + step.wake_in  # after the commit, so never before the database's own time

    def jump(self, ticket: str, path: str, epoch: int, ended: dict[str, Any] | None = None) -> None:
        """Store a ticket, what it drops and the step that answered with it, as one: nothing comes between them."""
        waiter = Waiter()
        with self.lock:
            entry = self._entry(epoch)
            self.epoch += 1
            name, _, rounds = self.ticket.partition("~")
            self.ticket = f"{ticket}~{int(rounds or 1) + 1}" if name == ticket else ticket
            if ended:
                self._record(entry, ended["step"], "done", ended["seconds"], ended["result"], None)
                self._tell(entry, ended["event"], ended["step"], ended["seconds"], ended.get("data"))
                if "variables" in ended:
                    entry.row["variables"] = _merge(entry.row.get("variables"), ended["variables"])
            self._drop_open(entry)
            entry.row |= {"ticket": self.ticket, "raises": 1}
            self._tell(entry, "ticket.raised", None, None, json.dumps({"ticket": ticket, "path": path}))
            entry.waiters.append(waiter)
            self.changed.notify_all()
        self.journal.submit(self)
        waiter.wait()

    def drop_strays(self, path: str) -> None:
        """An atomic step's ticket commits before its jump does; a crash between them leaves paths that nobody dropped."""
        with self.lock:
            if any(not step.ended and step.status != "dropped" for step in self._outside(path)):
                self._drop_open(self._entry(None), path)

    def _outside(self, path: str) -> list[Recorded]:
        return [
            step for steps in list(self.paths.values()) for step in steps if not (path and step.path.startswith(path))
        ]

    def _drop_open(self, entry: Entry, path: str = "") -> None:
        self.opening.clear()
        for step in self._outside(path):
            if step.status in ("open", "waiting", "again"):
                step.status, step.basket = "dropped", ""
                self._record(entry, step, "dropped", 0, None, None)

    def _is_heavy(self) -> bool:
        """So much has gathered that it must not wait any longer."""
        pending = self.pending
        return self.lazy and pending is not None and pending.size > HEAVY

    def _entry(self, epoch: int | None) -> Entry:
        if epoch is not None and epoch != self.epoch:
            raise Dropped
        if isinstance(self.stop, FINAL):
            raise self.stop
        if self.pending is None:
            self.pending = Entry()
        return self.pending

    def begin(self, step: Recorded, epoch: int) -> None:
        """Note that a body runs. The line is written only if it is still running in a moment."""
        self.last_step = step.name
        with self.lock:
            if epoch != self.epoch:
                raise Dropped
            self.opening[step.key] = time.monotonic()
        if not self.lazy:
            self.journal.submit_later(self, step.key)

    def opened(self, key: StepKey) -> bool:
        """The moment is over and the step still runs: put its start into what is pending. Called by the journal."""
        with self.lock:
            began = self.opening.pop(key, None)
            if began is None or self.stop:
                return False
            entry = self._entry(None)
            step = self.paths[key[0]][key[1]]
            seconds = time.monotonic() - began
            self._record(entry, step, "open", seconds, None, None)
            self._tell(entry, "step.started", step, None, None)
            return True

    def _record(
        self, entry: Entry, step: Recorded, status: str, seconds: float, result: str | None, error: str | None
    ) -> None:
        if status in ("done", "failed") and self.suspects:
            self.suspects.discard(f"{step.path}{step.position}")
        if status == "done" and not self.suspects and step.kind != "parallel":
            entry.row["advanced"] = True
        self.opening.pop(step.key, None)
        kept = {"id": str(self.id), "position": step.position, "name": step.name, "status": status}
        kept |= {"attempt": step.attempt, "seconds": seconds, "result": result, "error": error}
        for name, usual in USUAL.items():
            if (value := getattr(step, name)) != usual:
                kept[name] = value
        if step.wake_at:
            kept["wake_at"] = step.wake_at.isoformat()
        entry.steps[step.key] = kept
        entry.size += len(result or "") + len(error or "") + len(step.name) + 100

    def _tell(self, entry: Entry, event: str, step: Recorded | None, seconds: float | None, data: str | None) -> None:
        told: dict[str, Any] = {"id": str(self.id), "type": event, "k": len(entry.events) + 1, "data": data}
        if step:
            told |= {"path": step.path, "step": step.name, "attempt": step.attempt, "seconds": seconds}
        entry.events.append(told)

    def is_waiting(self, step: Recorded) -> bool:
        """Still waiting, as far as this process knows: no time has come, nobody answered, no signal lies here."""
        return step.waits() and not (
            step.kind == "signal" and any(signal["name"] == step.name for signal in self.inbox)
        )

    def open_names(self) -> list[str]:
        """The steps whose bodies run now."""
        steps = [step for path in list(self.paths.values()) for step in list(path)]
        return [step.name for step in steps if step.status == "open" and step.kind != "parallel"]

    # -- stopping -------------------------------------------------------------------------------------------------

    def check(self, epoch: int) -> None:
        """Called before anything new begins on a path."""
        if epoch != self.epoch:
            raise Dropped
        if self.stop:
            raise self.stop
        if self.asked or self.stopping:
            raise Interrupted

    def refuse(self, stop: Stop, entry: Entry | None = None) -> None:
        """Nothing more may be written. With an entry that was refused: nor what was asked for after it."""
        with self.lock:
            self.stop = stop
            if entry and self.pending:
                entry.waiters += self.pending.waiters
                self.pending = None
            self.changed.notify_all()
        for waiter in entry.waiters if entry else ():
            waiter.release(stop)

    def hear_variables(self, stored: dict[str, Any]) -> None:
        """Take over what somebody else has set; what this run has set since stays. Called under the lock."""
        before, self.stored_variables = self.stored_variables, stored
        theirs = {name: value for name, value in stored.items() if self.variables.get(name) == before.get(name)}
        self.variables = self.variables | theirs

    def hand_back(self) -> bool:
        """Give it back before its run has come to an end. False if that has had its last word, or it is not ours."""
        with self.lock:
            if self.leaving or self.stop:
                return False
            entry = self._entry(None)
            entry.row |= {"status": "queued", "wake_in": 0}
            self._tell(entry, "workflow.handed_back", None, None, json.dumps({"in_step": self.last_step}))
            self.leaving, self.stop = True, Fenced()
            self.changed.notify_all()
        self.journal.submit(self)
        return True

    def nudge(self, nudges: int, asked: dict[str, Any] | None) -> bool:
        """Somebody acted from outside. True if it is news."""
        if nudges <= self.nudges and asked == self.asked:
            return False
        with self.lock:
            self.asked = asked
            self.changed.notify_all()
        return nudges > self.nudges


def _merge(old: str | None, new: str) -> str:
    """Two JSON objects as one text, the newer keys winning: Postgres keeps the last of duplicates."""
    if old is None or old == "{}":
        return new
    return old if new == "{}" else f"{old[:-1]},{new[1:]}"

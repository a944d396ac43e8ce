"""What a workflow's body holds in its hand: `run`. One object per execution path.

The body runs from the top each time; what is recorded is read, what is not is done and recorded. Nothing new begins
before it was asked whether the run may go on, and nothing goes on before it is durable.
"""

import logging
import random
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, ClassVar

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from . import attempt, values
from .attempt import Body
from .baskets import check_basket
from .errors import BadValue, Diverged, Dropped, Parked, StepFailed, StepTimedOut, Stop, TimedOut
from .held import Held, Recorded
from .here import here
from .paths import Crew, run_branches
from .retry import DEFAULT, Backoff, describe
from .values import encode, stored, text
from .variables import check_types

log = logging.getLogger("rekindle")


class Run:
    """See the module. `run.step`, `run.sleep`, `run.pend`, `run.receive`, `run.parallel`, `run.set`, `run.ticket`."""

    _here: ClassVar = here

    def __init__(self, held: Held, crew: Crew, path: str = ".") -> None:
        self._held = held
        self._crew = crew
        self._epoch = held.epoch
        self._met: Counter[str] = Counter()
        self._position = 0
        self._stopped: Stop | None = None
        self._body: Body | None = None  # the step's body that is running
        self._unwritten = False  # something was asked for that nobody waited for
        self.path = path
        self.id = held.id
        self.key = held.key
        self.name = held.name
        self.version = held.version  # of the code it was started with: newer code may ask
        self.generation = held.generation

    # -- what the body asks ---------------------------------------------------------------------------------------

    @property
    def variables(self) -> Mapping[str, Any]:
        """The workflow's variables. Change them with `run.set`."""
        body = self._running()
        return MappingProxyType(self._held.variables | (body.staged if body else {}))

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of the step that is running: give it to whoever may be called twice."""
        body = self._running()
        return f"{self.id}{body.step.path}{body.step.position}" if body else str(self.id)

    @property
    def attempt(self) -> int:
        """How often the running step's body was begun, this time included."""
        body = self._running()
        return body.attempt if body else 0

    @property
    def should_stop(self) -> bool:
        """True once the run is to end: a long body may look here and return early."""
        return bool(self._held.stop or self._held.asked or self._held.stopping)

    @classmethod
    def current(cls) -> "Run":
        """The run whose step is executing on this thread."""
        body: Body | None = getattr(cls._here, "body", None)
        if body is None:
            raise LookupError("No step is running on this thread; current() works inside a step's body.")
        return body.run

    # -- what the body does ---------------------------------------------------------------------------------------

    def step(
        self,
        function: Callable[..., Any],
        *args: Any,
        name: str = "",
        retries: int = 1,
        backoff: Backoff | float = DEFAULT,
        give_up_on: tuple[type[Exception], ...] = (),
        timeout: float | None = None,
        on_crash: str = "rerun",
        atomic: bool = False,
        idempotent: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Run a function once and keep its result. `retries` counts all tries, the first included.

        `on_crash` says what to do if a worker dies in it: rerun, later, hold (for a person's review) or fail.
        """
        terms = attempt.Terms(
            retries,
            backoff if isinstance(backoff, Backoff) else Backoff(backoff),
            give_up_on,
            timeout,
            on_crash,
            atomic,
        )
        name = text(name or attempt.name_of(function), "The step's name", 200)
        step = self._meet(name, "step", on_crash=on_crash, idempotent=idempotent)
        if step.ended:
            return self._replay(step)
        if step.waits():
            raise self._stopping(Parked([step]))
        if step.status == "open" and step.attempt:
            attempt.after_crash(self, step, terms)
        return attempt.make(self, step, terms, lambda: function(*args, **kwargs))

    def sleep(self, duration: timedelta | float) -> None:
        """Leave memory and come back after that time."""
        seconds = values.duration(duration, "A sleep")
        self._wait(self._meet("sleep", "sleep"), wake_in=seconds)

    def sleep_until(self, moment: datetime) -> None:
        wake_at = values.moment(moment, "The end of the sleep")
        self._wait(self._meet("sleep", "sleep"), wake_at=wake_at)

    def pend(self, basket: str, *, timeout: timedelta | float | None = None) -> Any:
        """Wait in a basket until somebody resumes it; returns what they gave. Past `timeout` raises TimedOut."""
        wake_in = _seconds(timeout)
        step = self._meet(check_basket(basket), "pend")
        self._wait(step, wake_in=wake_in, basket=basket)
        return step.result

    def receive(self, name: str, *, timeout: timedelta | float | None = None) -> Any:
        """Wait for a signal; returns its data. One that came early is waiting already."""
        wake_in = _seconds(timeout)
        step = self._meet(text(name, "The signal's name", 80), "signal")
        if not step.ended:
            self._may_go_on()
            if (signal := self._take_signal(name)) is not None:
                step.status, step.result, step.basket = "done", signal["data"], ""
                self._write(step, "signal.received", result=encode(signal["data"], "The signal"), signal=signal["id"])
                return step.result
        self._wait(step, wake_in=wake_in, basket=f"signal:{name}"[:80])
        return step.result

    def parallel(
        self, name: str, branches: Mapping[str, Callable[["Run"], Any]] | None = None, **more: Callable[["Run"], Any]
    ) -> tuple[Any, ...]:
        """Run branches side by side, each on a path of its own, and return their results in order."""
        work = dict(branches or {}) | more
        for part in (name, *work):
            if "." in part or "~" in part or not part or part.startswith("!"):
                raise ValueError(f"{part!r} cannot name a path: no dots, no tildes, not empty, no ! in front.")
        for branch in work:
            text(f"{self.path}{name}~999999.{branch}.", "The path of the branch", 400)
        step = self._meet(name, "parallel")
        if step.ended:
            return tuple(self._replay(step))
        recorded = (step.result or {}).get("branches")
        if recorded is not None and recorded != list(work):
            raise self._stopping(
                Diverged(f"parallel {name} was recorded with {recorded}, the code now has {list(work)}")
            )
        if recorded is None:
            step.status, step.attempt, step.result = "open", 1, {"branches": list(work)}
            self._write(step, "parallel.started", result=encode(step.result, "The branches"), durable=False)
        suffix = f"~{step.occurrence}" if step.occurrence > 1 else ""
        paths = {branch: f"{self.path}{name}{suffix}.{branch}." for branch in work}
        results = run_branches(self, {paths[branch]: body for branch, body in work.items()})
        return attempt.join(self, step, results)

    def set(self, **values: Any) -> None:
        """Set variables. Inside a step they are kept with its result; outside, once, as a step of their own."""
        if body := self._in_time():
            check_types(self._held.variables | body.staged, values)
            encode(values, "The variables")
            body.staged |= values
            return
        step = self._meet("set", "value")
        if step.ended:
            self._replay(step)
            return
        self._may_go_on()
        try:
            check_types(self._held.variables, values)
            encoded = encode(values, "The variables")
        except BadValue as error:  # recorded: a replay, which sees later variables, must meet the same
            step.status, step.error = "failed", describe(error)
            self._write(step, "variables.refused", error=encode(step.error, "The error"))
            raise StepFailed("set", step.error) from error
        step.status = "done"
        with self._held.lock:
            self._held.variables = self._held.variables | values
        self._write(step, "variables.set", variables=encoded, durable=False)

    def ticket(self, name: str) -> None:
        """Jump to the handler of that name from any path; all open paths are dropped. The first ticket wins."""
        self._in_time()
        self._may_go_on()
        raise self._stopping(attempt.raise_ticket(self, name))

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Say how far the running step is. More than ever before counts as progress against crashes."""
        self._in_time()
        held = self._held
        row: dict[str, Any] = {"progress": encode({"done": done, "total": total, "note": note}, "The progress")}
        if done > held.best_progress:
            held.best_progress = done
            row["advanced"] = True
        held.write(row=row, durable=False, epoch=self._epoch)

    def now(self) -> datetime:
        """The time, recorded: the same on every replay."""
        moment = parse_datetime(self._value("now", lambda: timezone.now().isoformat()))
        assert moment is not None
        return moment

    def random(self) -> float:
        return float(self._value("random", random.random))

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(self._value("uuid", lambda: str(uuid.uuid4())))

    # -- meeting what is recorded ---------------------------------------------------------------------------------

    def _meet(self, name: str, kind: str, **traits: Any) -> Recorded:
        """The step at this position of the path: the recorded one, which must fit, or a new one."""
        if body := self._running():
            raise RuntimeError(
                f"run.{kind} was called inside the step {body.step.name}; call it from the workflow's body."
            )
        if self._stopped:
            raise self._stopped
        recorded = self._held.paths[self.path]
        position, self._position = self._position, self._position + 1
        self._met[name] += 1
        if position < len(recorded):
            step = recorded[position]
            if (step.name, step.kind) != (name, kind):
                raise self._stopping(
                    Diverged(
                        f"at {self.path}{position} {step.kind} {step.name} is recorded, the code now has {kind} {name}"
                    )
                )
            return step
        if self._epoch != self._held.epoch:
            raise self._stopping(Dropped())
        text(name, "The name of a step", 200)
        step = Recorded(self.path, position, name, self._met[name], kind, "new", **traits)
        recorded.append(step)
        return step

    def _running(self) -> Body | None:
        """The body that asks: the one on this thread, else the one whose answer the path waits for."""
        mine: Body | None = getattr(self._here, "body", None)
        return mine if mine is not None and mine.run is self else self._body

    def _in_time(self) -> Body | None:
        body = self._running()
        if body and body.over:
            raise StepTimedOut(f"The body of {body.step.name} is past its time; nothing of it counts any more.")
        return body

    def _replay(self, step: Recorded) -> Any:
        if step.status == "done":
            return step.result
        error = step.error or {}
        raise TimedOut(error.get("message", "")) if error.get("type") == "TimedOut" else StepFailed(step.name, error)

    def _value(self, name: str, make: Callable[[], Any]) -> Any:
        step = self._meet(name, "value")
        if not step.ended:
            self._may_go_on()
            step.status, step.result = "done", make()
            self._write(step, "value.recorded", result=encode(step.result, "The value"))
        return step.result

    def _wait(
        self, step: Recorded, *, wake_in: float | None = None, wake_at: datetime | None = None, basket: str = ""
    ) -> None:
        """Pass if the wait is over, else park this path. The deadline is written once and never recomputed."""
        if step.ended:
            self._replay(step)
        elif step.status in ("new", "again"):  # again: revived after its time was over
            self._may_go_on()
            step.status, step.wake_in, step.wake_at, step.basket = "waiting", wake_in, wake_at, basket
            step.due = self._held.due(wake_at) if wake_at else None
            # A branch's wait must be known to those who end it while other branches run on; the root's goes with the pause.
            self._write(step, f"{step.kind}.started", durable=self.path != ".")
            raise self._stopping(Parked([step]))
        elif step.waits():
            raise self._stopping(Parked([step]))
        elif step.kind == "sleep":
            self._may_go_on()
            step.status = "done"
            self._write(step, "sleep.completed", durable=False)
        else:
            self._may_go_on()
            step.status, step.basket = "failed", ""
            step.error = {"type": "TimedOut", "message": f"nobody came for {step.kind} {step.name} in time"}
            self._write(step, f"{step.kind}.timed_out", error=encode(step.error, "The error"))
            self._replay(step)

    def _take_signal(self, name: str) -> dict[str, Any] | None:
        with self._held.lock:
            found = next((signal for signal in self._held.inbox if signal["name"] == name), None)
            if found:
                self._held.inbox.remove(found)
                self._held.taken.add(found["id"])
            return found

    # -- writing and stopping -------------------------------------------------------------------------------------

    def _write(
        self, step: Recorded | None, event: str, *, durable: bool = True, even_lazy: bool = False, **more: Any
    ) -> None:
        durable = durable and (even_lazy or not self._held.lazy)
        try:
            self._held.write(step=step, event=event, durable=durable, epoch=self._epoch, **more)
        except Stop as stop:
            raise self._stopping(stop) from None
        self._unwritten = not durable

    def _flush(self) -> None:
        """Wait until all that this path asked for is durable."""
        if self._unwritten or self._held.lazy:
            self._write(None, "", even_lazy=True)

    def _may_go_on(self) -> None:
        """Asked before anything new begins."""
        try:
            self._held.check(self._epoch)
        except Stop as stop:
            raise self._stopping(stop) from None

    def _stopping(self, stop: Stop) -> Stop:
        """Remember why this path ends: a body that swallows the exception meets it again at its next call."""
        self._stopped = stop
        return stop

    def _finish(self) -> None:
        """Called after the body returned: it may not have swallowed a stop or left recorded steps unread."""
        if self._stopped:
            raise self._stopped
        recorded = self._held.paths[self.path]
        if self._position < len(recorded):
            step = recorded[self._position]
            raise Diverged(
                f"the code returned where {step.kind} {step.name} is recorded at {self.path}{self._position}"
            )


def _seconds(duration: timedelta | float | None) -> float | None:
    return None if duration is None else values.duration(duration, "A wait")


__all__ = ["Run", "stored"]

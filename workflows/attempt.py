"""One attempt at a step: begin, run the body, and store what came of it."""

import functools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import logs
from .atomic import AlreadyDone, commit_with
from .baskets import check_basket, kind_of
from .errors import BadValue, Dropped, Parked, StepFailed, StepTimedOut, Stop
from .held import Recorded
from .responses import Response
from .retry import AFTER_CONFLICT, CONFLICTS, WHILE_AWAY, Backoff, describe, is_away, is_conflict
from .values import encode, stored

if TYPE_CHECKING:
    from .run import Run

ON_CRASH = ("rerun", "later", "hold", "fail")
REVIEW = "crash_review"
CRASHED = {"type": "Crashed", "message": "its worker died in this step; whether it took effect is unknown"}


@dataclass(frozen=True, slots=True)
class Terms:
    """What the author said of a step."""

    retries: int
    backoff: Backoff
    give_up_on: tuple[type[Exception], ...]
    timeout: float | None
    on_crash: str
    atomic: bool

    def __post_init__(self) -> None:
        if self.on_crash not in ON_CRASH:
            raise ValueError(f"on_crash={self.on_crash!r} is unknown; choose one of {', '.join(ON_CRASH)}.")
        if self.retries < 1:
            raise ValueError(f"retries={self.retries}: it counts all tries, the first included; give at least 1.")
        if self.atomic and self.timeout is not None:
            raise ValueError("An atomic step cannot have a timeout: its transaction would outlive it.")


def name_of(function: Callable[..., Any]) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", "")
    if not name or name == "<lambda>":
        raise ValueError(f"{function!r} has no name of its own; give the step one with name=…")
    return name


@dataclass(slots=True, eq=False)
class Body:
    """One call of a step's body. Left behind past its time it is over, and nothing it still says counts."""

    run: "Run"
    step: Recorded
    attempt: int
    staged: dict[str, Any] = field(default_factory=dict)  # variables, kept with the result
    over: bool = False


def make(run: "Run", step: Recorded, terms: Terms, function: Callable[[], Any]) -> Any:
    """Run the body once and store its result, its failure, or where it now waits."""
    held = run._held
    run._may_go_on()
    if terms.atomic:
        run._flush()  # its commit overtakes the journal; what comes before it on this path must be there first
    step.attempt += 1
    step.status, step.response, step.basket, step.wake_in, step.wake_at, step.due = "open", "", "", None, None, None
    step.on_crash = terms.on_crash
    if step.failures:
        logs.step_retried(held, step)
    if terms.on_crash != "rerun" or held.careful:
        held.last_step = step.name
        run._write(step, "step.started", even_lazy=True)
    else:
        try:
            held.begin(step, run._epoch)
        except Stop as stop:
            raise run._stopping(stop) from None
    body = Body(run, step, step.attempt)
    began = time.monotonic()
    try:
        if terms.atomic:
            return commit_with(run, step, lambda: _call(body, function), lambda v: _settle(body, terms, v, began))
        value = _call(body, function) if terms.timeout is None else _call_within(body, function, terms.timeout)
    except Stop as stop:
        raise run._stopping(stop) from None
    except AlreadyDone as done:
        step.status, step.result = "done", done.result
        return step.result
    except BaseException as error:  # SystemExit too: a body that calls sys.exit() has failed, not the worker
        return _failed(run, step, terms, error, began)
    return _store(body, terms, value, began)


def after_crash(run: "Run", step: Recorded, terms: Terms) -> None:
    """A worker died in this step: begun, end unknown. Its author said what to do."""
    if terms.on_crash == "later":
        step.status, step.wake_in = "waiting", Backoff(30).delay(step.attempt)
        run._write(step, "step.postponed", durable=run.path != ".")
        raise run._stopping(Parked([step]))
    if terms.on_crash == "hold":
        step.status, step.basket, step.error = "waiting", REVIEW, dict(CRASHED)
        run._write(step, "step.held", error=encode(CRASHED, "The error"), durable=run.path != ".")
        raise run._stopping(Parked([step]))
    if terms.on_crash == "fail":
        step.status, step.error = "failed", dict(CRASHED)
        run._write(step, "step.failed", error=encode(CRASHED, "The error"))
        raise StepFailed(step.name, step.error)


def join(run: "Run", step: Recorded, results: list[Any]) -> tuple[Any, ...]:
    """All branches have ended: keep their results, or the first error, in the order of the branches."""
    error = next((result for result in results if isinstance(result, Exception)), None)
    try:
        encoded = None if error else encode(results, f"the results of parallel {step.name}")
    except BadValue as bad:
        error, encoded = bad, None
    if error:
        step.status, step.error = "failed", describe(error)
        run._write(step, "parallel.failed", error=encode(step.error, "The error"))
        raise StepFailed(step.name, step.error) from error
    assert encoded is not None
    step.status, step.result = "done", stored(results, encoded)
    run._write(step, "parallel.joined", result=encoded)
    return tuple(step.result)


def raise_ticket(run: "Run", name: str, ended: dict[str, Any] | None = None) -> Stop:
    """Record the jump. Raises the fence, so that nothing of the dropped paths can be written after it."""
    try:
        run._held.jump(_known(run, name), run.path, run._epoch, ended)
    except Stop as stop:
        return stop
    return Dropped()


def _known(run: "Run", ticket: str) -> str:
    tickets = run._held.definition.tickets
    if ticket not in tickets:
        raise ValueError(f"{run.name} has no ticket {ticket!r}. It has: {', '.join(sorted(tickets)) or 'none'}.")
    return ticket


# -- bodies -------------------------------------------------------------------------------------------------------


def _call(body: Body, function: Callable[[], Any]) -> Any:
    run = body.run
    before, run._here.body = getattr(run._here, "body", None), body
    if not body.over:
        run._body = body
    try:
        return function()
    finally:
        run._here.body = before
        if run._body is body:
            run._body = None


def _call_within(body: Body, function: Callable[[], Any], seconds: float) -> Any:
    """A body cannot be killed: past its time it is left behind, and whatever it still returns counts for nothing."""
    answer: list[tuple[bool, Any]] = []
    returned, crew = threading.Event(), body.run._crew

    def work() -> None:
        try:
            answer.append((True, _call(body, function)))
        except BaseException as error:
            answer.append((False, error))
        crew.returned(returned)

    crew.hire(work)
    if not returned.wait(seconds):
        body.over, body.run._body = True, None
        crew.lost(returned)
        raise StepTimedOut(f"no answer within {seconds:g} s")
    fine, value = answer[0]
    if fine:
        return value
    raise value


# -- what came of it ----------------------------------------------------------------------------------------------


def _store(body: Body, terms: Terms, value: Any, began: float) -> Any:
    run, step = body.run, body.step
    try:
        write, after = _settle(body, terms, value, began)
    except (BadValue, ValueError) as error:
        return _failed(run, step, terms, error, began, retry=False)
    if "ticket" in write:
        raise run._stopping(raise_ticket(run, write.pop("ticket"), write | {"step": step}))
    run._write(step, even_lazy=terms.on_crash != "rerun", **write)
    return after()


def _settle(body: Body, terms: Terms, value: Any, began: float) -> tuple[dict[str, Any], Callable[[], Any]]:
    """What to write for an answer, and what to do once it is durable."""
    run, step = body.run, body.step
    response = value if isinstance(value, Response) else Response("ok_proceed", result=value)
    encoded = encode(response.result, f"the result of step {step.name}")
    result = stored(response.result, encoded)
    write: dict[str, Any] = {"seconds": time.monotonic() - began, "result": encoded}
    if body.staged:
        write["variables"] = encode(body.staged, "The variables")
    if response.ticket:
        write["ticket"] = _known(run, response.ticket)
    basket = "" if response.type == "ok_proceed" else check_basket(response.basket)
    step.response, step.result = response.type, result
    if response.type == "ok_proceed" or response.ticket:
        step.status = "done"
        write["event"] = "step.completed"
    else:
        step.status, step.basket = "waiting", basket
        write["event"] = "step.pended"
        write["data"] = encode({"basket": step.basket, "response": response.type}, "The response")
        if kind_of(step.basket) == "retry" and response.type == "error_pend":
            step.failures += 1
            step.wake_in = terms.backoff.delay(step.failures)

    def after() -> Any:
        if body.staged:
            with run._held.lock:
                run._held.variables = run._held.variables | body.staged
        if step.status == "waiting":
            raise run._stopping(Parked([step]))
        return result

    return write, after


def _interrupted(run: "Run", step: Recorded, terms: Terms, seconds: float, lost: str, times: int) -> Stop:
    """Neither done nor failed: a database went away, or undid it for another's sake, so many times in a row."""
    if terms.on_crash != "rerun":
        after_crash(run, step, terms)
    step.error = (step.error or {}) | {lost: times}
    step.status, step.wake_in = "waiting", (WHILE_AWAY if lost == "away" else AFTER_CONFLICT).delay(times)
    run._write(
        step, "step.interrupted", seconds=seconds, error=encode(step.error, "The error"), durable=run.path != "."
    )
    return run._stopping(Parked([step]))


def _failed(run: "Run", step: Recorded, terms: Terms, error: BaseException, began: float, *, retry: bool = True) -> Any:
    seconds = time.monotonic() - began
    step.basket, step.response, step.wake_in = "", "", None
    lost = "conflicts" if is_conflict(error) else "away" if is_away(error) else ""
    times = (step.error or {}).get(lost, 0) + 1 if lost else 0
    step.error = describe(error)
    if lost == "away" or 0 < times < CONFLICTS:
        raise _interrupted(run, step, terms, seconds, lost, times)
    if lost:
        step.error["message"] = f"The database undid it {times} times in a row for others: {step.error['message']}"
    step.failures += 1
    write: dict[str, Any] = {"seconds": seconds, "error": encode(step.error, "The error")}
    retry = retry and step.failures < terms.retries and not isinstance(error, terms.give_up_on)
    summary = {"type": step.error["type"], "message": step.error["message"][:500], "will_retry": retry}
    write["data"] = encode(summary, "The error")
    if retry:
        step.status, step.wake_in = "waiting", terms.backoff.delay(step.failures)
        logs.step_failed(run._held, step, step.error["type"], will_retry=True)
        run._write(step, "step.failed", durable=run.path != ".", **write)
        raise run._stopping(Parked([step]))
    step.status, step.result = "failed", None
    logs.step_failed(run._held, step, step.error["type"], will_retry=False)
    run._write(step, "step.failed", even_lazy=terms.on_crash != "rerun", **write)
    raise StepFailed(step.name, step.error) from error

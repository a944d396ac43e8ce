"""Running one claimed workflow until it ends, waits, or is no longer ours."""

import logging
import time
from typing import Any

from . import logs, signals
from .errors import BadValue, Diverged, Dropped, Fenced, Interrupted, Overtaken, Parked, Refusal, Stop
from .held import Held, Recorded
from .integrity import root_of
from .models.workflow import FINISHED
from .paths import DESK, Crew
from .retry import describe
from .run import Run
from .values import encode

log = logging.getLogger("rekindle")

BLOCKED_FOR = 60  # a blocked workflow is looked at again each minute


def execute(held: Held, crew: Crew) -> str:
    """Run it as far as it goes and write how that ended. Returns the word for it."""
    logs.claimed(held)
    if held.is_recovery:
        signals.tell_recovered(held.id, held.name, held.key, held.recovery_attempts, held.max_recovery_attempts)
    while True:
        try:
            try:
                outcome = _advance(held, crew)
            except Exception as error:  # what could not be written down ends it: it must not stay in our hands
                outcome = _fail(held, error)
        except Dropped:
            continue  # a ticket was raised: enter its handler
        except Fenced:
            outcome = "fenced"
        except Overtaken:
            held.stop = None
            outcome = _interrupt(held)
        except Refusal as refusal:
            held.stop = None
            reason = {"type": "Refusal", "message": f"The database would not store what it wrote: {refusal}"}
            outcome = _end(held, "failed", error=encode(reason, "The error"))
            logs.failed(held, "Refusal")
        break
    held.refuse(Fenced())  # a body left behind may still try to write
    logs.ended(held, outcome)
    if outcome in FINISHED:
        signals.tell_finished(held.id, held.name, held.key, outcome)
    return outcome


def _advance(held: Held, crew: Crew) -> str:
    try:
        held.check(held.epoch)
        if held.flaw:
            return _set_aside(held)
        if any(step.waits() for step in held.paths[DESK]):
            raise Parked(held.paths[DESK])
        function = held.definition.function
        if held.ticket:
            name = held.ticket.partition("~")[0]
            if name not in held.definition.tickets:
                raise Diverged(f"the ticket {name} was raised, the code now has no handler for it")
            function = held.definition.tickets[name]
            held.drop_strays(root_of(held.ticket))
        run = Run(held, crew, root_of(held.ticket))
        output = function(run, **held.input)
        run._finish()
        return _end(held, "completed", output=encode(output, f"the output of {held.name}"))
    except Parked as parked:
        return _park(held, parked.args[0])
    except Interrupted:
        return _interrupt(held)
    except Diverged as reason:
        return _block(held, str(reason))
    except BadValue as error:
        return _fail(held, error)
    except Stop:
        raise
    except BaseException as error:  # whatever the body raised ends the workflow, not the worker
        if isinstance(error, TypeError) and held.definition.misfit(held.input):
            return _block(held, f"the stored input does not fit the code: {error}")
        return _fail(held, error)


def _fail(held: Held, error: BaseException) -> str:
    outcome = _end(held, "failed", error=encode(describe(error), "The error"))
    logs.failed(held, type(error).__name__)
    return outcome


def _end(held: Held, status: str, *, output: str | None = None, error: str | None = None) -> str:
    held.last_step = ""
    held.write(row={"status": status, "output": output, "error": error}, event=f"workflow.{status}")
    return status


def _park(held: Held, waits: list[Recorded]) -> str:
    """No path runs: the row sums up what they wait for. If somebody acted meanwhile, it is due at once."""
    timed = [step for step in waits if step.due is not None]
    first = min(timed, key=lambda step: step.due or 0, default=None)
    pended = max((step for step in waits if step.basket), key=lambda step: step.path.count("."), default=None)
    reason = "pend" if pended else "retry" if first and first.kind == "step" else "sleep"
    row: dict[str, Any] = {"status": "paused", "pause_reason": reason, "basket": pended.basket if pended else ""}
    if first:
        row |= _wake(held, first)
    with held.lock:
        # What arrived up to here is known to this process, what comes later the database knows by its nudges.
        row["nudges"], asked = held.nudges, held.asked
        if not all(held.is_waiting(step) for step in waits):
            row |= {"wake_at": None, "wake_in": 0}
    if asked:
        return _interrupt(held)
    note = {"reason": reason, "basket": row["basket"] or None, "step": (pended or first or waits[0]).name}
    held.write(row=row, event="workflow.paused", data=encode(note, "The pause"))
    return "paused"


def _wake(held: Held, step: Recorded) -> dict[str, Any]:
    """The row's alarm: the very moment of its earliest wait."""
    if step.wake_at:
        return {"wake_at": step.wake_at.isoformat()}
    assert step.due is not None
    same_commit = held.pending is not None and step.key in held.pending.steps
    return {"wake_in": step.wake_in if same_commit else max(0.0, step.due - time.monotonic())}


def _interrupt(held: Held) -> str:
    asked = held.asked
    if asked and asked["what"] == "cancel":
        held.write(row={"status": "cancelled"}, event="workflow.cancelled", data=encode(asked, "The request"))
        return "cancelled"
    if asked and asked["what"] == "pause":
        row = {"status": "paused", "pause_reason": "suspended"}
        held.write(row=row, event="workflow.suspended", data=encode(asked, "The request"))
        return "suspended"
    held.write(row={"status": "queued", "wake_in": 0}, event="workflow.handed_back")
    return "handed back"


def _set_aside(held: Held) -> str:
    """What is stored cannot be read: no code will mend that, so an operator has to look."""
    log.error("%s cannot be repaired: %s", held.name, held.flaw, extra={"workflow": str(held.id)})
    error = encode({"type": "CorruptState", "message": held.flaw}, "The error")
    row = {"status": "paused", "pause_reason": "suspended", "error": error}
    held.write(row=row, event="workflow.corrupt", data=encode({"reason": held.flaw}, "The reason"))
    return "suspended"


def _block(held: Held, reason: str) -> str:
    """The code does not fit what is recorded. Wait for other code; no attempt is burned."""
    if held.asked:
        return _interrupt(held)  # nobody may ever come who could carry it out
    log.error("%s is blocked: %s", held.name, reason, extra=logs.about(held))
    row = {
        "status": "paused",
        "pause_reason": "blocked",
        "wake_in": BLOCKED_FOR,
        "refused_by": held.definition.fingerprint,
        "spared": held.is_recovery,  # the claim counted it before anybody knew that the code does not fit
        "error": encode({"type": "Blocked", "message": reason}, "The reason"),
    }
    held.write(row=row, event="workflow.blocked", data=encode({"reason": reason}, "The reason"))
    return "blocked"

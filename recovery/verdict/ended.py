"""It is over: well, by its own failure, by hand, or given up."""

from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from workflows.models import Status, Step

from ..sentences import Name, Part, ago, count, stop, times
from ..words import duration
from .seen import Kind, Seen, Severity, Verdict


def ended(seen: Seen) -> Verdict:
    workflow = seen.workflow
    if seen.successor:
        return _reopened(seen)
    if workflow.status == Status.COMPLETED:
        return _completed(seen)
    if workflow.status == Status.CANCELLED:
        return _cancelled(seen)
    error = workflow.error or {}
    if "discarded" in error:
        return _discarded(seen, error["discarded"])
    if error.get("type") == "RecoveryFailed":
        return _given_up(seen, error)
    if error.get("type") == "FailedByHand":
        return _failed_by_hand(seen, error)
    return _failed(seen, error)


def _at(seen: Seen) -> datetime:
    assert seen.workflow.finished_at
    return seen.workflow.finished_at


def _completed(seen: Seen) -> Verdict:
    workflow = seen.workflow
    took = duration((_at(seen) - workflow.due_at).total_seconds())
    steps = sum(step.kind == Step.Kind.STEP and step.status == Step.Status.DONE for step in seen.steps)
    rest = f"{count(steps, 'step')} did their work." if steps > 1 else ""
    if workflow.recoveries:
        rest = f"{rest} It was recovered {times(workflow.recoveries)} on the way; no finished step ran again.".strip()
    return Verdict(
        Kind.COMPLETED,
        Severity.CALM,
        "completed",
        "Completed",
        seen.say("Completed ", ago(_at(seen)), f", after {took}."),
        seen.say(*[rest] if rest else []),
    )


def _cancelled(seen: Seen) -> Verdict:
    data = seen.told.data if seen.told else {}
    why = f": {data['reason']}" if data.get("reason") else ""
    return Verdict(
        Kind.CANCELLED,
        Severity.CALM,
        "cancelled",
        "Cancelled",
        seen.say(f"Cancelled by {data.get('by') or 'an operator'} ", ago(_at(seen)), stop(why) if why else "."),
        seen.say("What was finished is kept; revive it to go on where it stopped."),
    )


def _failed(seen: Seen, error: dict[str, Any]) -> Verdict:
    broken = next((step for step in reversed(seen.steps) if step.status == Step.Status.FAILED), None)
    told = (broken.error if broken else None) or error
    message = str(error.get("message") or told.get("message") or "")
    if broken:
        message = message.removeprefix(f"step {broken.name} failed: ")
    where: list[Part] = [" in ", Name(broken.name)] if broken else []
    name = str(told.get("type") or "")
    what = f"{name}: {message}" if name and name != "StepFailed" and not message.startswith(name) else message
    tries = f" after {broken.failures} tries" if broken and broken.failures > 1 else ""
    return Verdict(
        Kind.FAILED,
        Severity.ACT,
        "failed",
        "Failed",
        seen.say("Failed ", ago(_at(seen)), *where, f"{tries}: ", stop(what[:300] or "no reason was given")),
        seen.say("It waits for you: revive it to try that step again, run it again from another, or put it aside."),
        broken.name if broken else name,
    )


def _failed_by_hand(seen: Seen, error: dict[str, Any]) -> Verdict:
    data = seen.told.data if seen.told else {}
    message = str(error.get("message") or "")[:300]
    return Verdict(
        Kind.FAILED_BY_HAND,
        Severity.CALM,
        "failed",
        "Failed",
        seen.say(f"Failed by {data.get('by') or 'an operator'} ", ago(_at(seen)), ": ", stop(message)),
        seen.say("What was finished is kept; revive it to go on where it stopped."),
    )


def _given_up(seen: Seen, error: dict[str, Any]) -> Verdict:
    tried = times(seen.workflow.recovery_attempts)
    steps = [str(name) for name in error.get("open") or []]
    where: list[Part] = [" in step ", Name(steps[0])] if steps else []
    kept = len(error.get("completed_steps") or [])
    return Verdict(
        Kind.GIVEN_UP,
        Severity.ACT,
        "failed",
        "Given up",
        seen.say("Given up ", ago(_at(seen)), f": it was recovered {tried}, and its worker died again", *where, "."),
        seen.say(
            f"Waiting for you. {count(kept, 'step')} {'is' if kept == 1 else 'are'} kept; revive it, or put it aside."
        ),
        steps[0] if steps else "",
    )


def _discarded(seen: Seen, told: dict[str, Any]) -> Verdict:
    at = parse_datetime(str(told.get("at") or "")) or _at(seen)
    why = f": {told['reason']}" if told.get("reason") else ""
    return Verdict(
        Kind.DISCARDED,
        Severity.CALM,
        "failed",
        "Failed",
        seen.say(f"Put aside by {told.get('by') or 'an operator'} ", ago(at), stop(why) if why else "."),
        seen.say("Nobody needs to look at it any more; it can still be revived."),
    )


def _reopened(seen: Seen) -> Verdict:
    workflow = seen.workflow
    state = {Status.COMPLETED: "completed", Status.CANCELLED: "cancelled"}.get(Status(workflow.status), "failed")
    return Verdict(
        Kind.REOPENED,
        Severity.CALM,
        state,
        Status(workflow.status).label,
        seen.say(
            f"{Status(workflow.status).label} ",
            ago(_at(seen)),
            f", and run again as generation {workflow.generation + 1}.",
        ),
        seen.say("This one is kept as it was; act on the newer one."),
    )

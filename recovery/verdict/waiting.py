"""Nobody holds it: its time has come, or it waits for a time, a person, a signal, other code, the one before it."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from workflows.baskets import kind_of
from workflows.models import PauseReason, Status, Step

from ..checking import REVIEWED
from ..late import GRACE
from ..sentences import Name, Part, ago, lasting, stop, times, until
from .seen import Kind, Seen, Severity, Verdict

AT_ONCE = timedelta(seconds=1)
LATE = timedelta(seconds=30)  # due, nothing stands in its way, and nobody takes it
OVERDUE = timedelta(seconds=GRACE)  # whatever stands in its way
PATIENCE = timedelta(days=1)  # after which somebody should have looked into a basket


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Why a due workflow is not taken. `because` completes "waits: …"."""

    kind: Kind
    severity: Severity
    word: str
    because: tuple[Part, ...]
    then: tuple[Part, ...]


def waiting(seen: Seen) -> Verdict:
    workflow = seen.workflow
    reason = workflow.pause_reason if workflow.status == Status.PAUSED else ""
    if reason == PauseReason.SUSPENDED:
        return _suspended(seen)
    if reason == PauseReason.BLOCKED:
        return _blocked(seen)
    if reason == PauseReason.LANE:
        return _lane(seen)
    if found := for_people(seen):
        return found
    if workflow.wake_at and workflow.wake_at <= seen.now:
        return _due(seen)
    if reason == PauseReason.PEND:
        return _pended(seen)
    if reason == PauseReason.RETRY:
        return _retrying(seen)
    if reason == PauseReason.SLEEP:
        return _sleeping(seen)
    assert workflow.wake_at
    return Verdict(
        Kind.PENDING,
        Severity.CALM,
        "pending",
        "Pending",
        seen.say("Starts at ", until(workflow.wake_at), "."),
        seen.say("It was asked for ", ago(workflow.created_at), " and comes by itself, ", ago(workflow.wake_at), "."),
        at=workflow.wake_at,
    )


def hindrance(seen: Seen) -> Hindrance | None:
    """The reason of the claim itself, in words."""
    workflow, policy = seen.workflow, seen.policy
    name = f"{workflow.name} v{workflow.version}"
    if seen.obstacle == "policy paused":
        by = f" by {policy.changed_by}" if policy and policy.changed_by else ""
        why = f" ({policy.reason})" if policy and policy.reason else ""
        since: tuple[Part, ...] = (" ", ago(policy.changed_at)) if policy else ()
        paused: tuple[Part, ...] = (Name(workflow.name), f" was paused{by}", *since, why)
        return Hindrance(
            Kind.NAME_PAUSED, Severity.WATCH, "Held back", paused, ("It starts when the name is resumed.",)
        )
    if seen.obstacle == "limit reached":
        most = policy.concurrency if policy and policy.concurrency else 0
        full = (f"{most} of {most} ", Name(workflow.name), " run already") if most else ("its limit is reached",)
        return Hindrance(Kind.LIMITED, Severity.CALM, "Queued", full, ("It starts when one of them ends or waits.",))
    if seen.live_workers == 0:
        return Hindrance(
            Kind.NO_WORKER,
            Severity.ACT,
            "Stuck",
            ("no worker is alive",),
            ("Start one: ", Name("manage.py work"), "."),
        )
    if seen.obstacle == "no worker has this code":
        return Hindrance(
            Kind.NO_CODE,
            Severity.ACT,
            "Blocked",
            ("no running worker has the code of ", Name(name)),
            ("It continues by itself when one starts.",),
        )
    if seen.obstacle == "all workers are busy":
        then = ("It starts as soon as one of them has a free slot; more workers would take it sooner.",)
        return Hindrance(Kind.BUSY, Severity.CALM, "Queued", ("every worker that knows it is busy",), then)
    if seen.obstacle:
        return Hindrance(
            Kind.ALONE,
            Severity.CALM,
            "Queued",
            ("it runs alone, in a process that holds nothing else",),
            ("Its worker died before, so nobody else shall pay for it; it takes its turn.",),
        )
    return None


# -- due --------------------------------------------------------------------------------------------------------------


def _due(seen: Seen) -> Verdict:
    due = seen.workflow.wake_at
    assert due
    why = hindrance(seen)
    if why and why.kind == Kind.NO_CODE:
        headline = seen.say("Blocked: ", *why.because, ".")
        return Verdict(why.kind, why.severity, "paused", why.word, headline, seen.say(*why.then), str(headline))
    if why:
        headline = seen.say("Due ", ago(due), ", and waits: ", *why.because, ".")
        state = "queued" if why.severity == Severity.CALM else "paused"
        late = why.severity == Severity.CALM and seen.now - due > OVERDUE
        severity, word = (Severity.WATCH, "Late") if late else (why.severity, why.word)
        return Verdict(why.kind, severity, state, word, headline, seen.say(*why.then), why.kind)
    if seen.now - due > LATE:
        return Verdict(
            Kind.LATE,
            Severity.WATCH,
            "orphan",
            "Late",
            seen.say("Late: it was due ", ago(due), " and nobody has taken it."),
            seen.say("Nothing stands in its way: all slots are busy, or the backlog before it is long."),
        )
    handed = seen.told is not None and seen.told.type == "workflow.handed_back"
    rest: list[Part] = ["It has been due for ", lasting(due), "."]
    if handed:
        rest = ["Its worker was stopped and handed it back; no attempt was burned."]
    return Verdict(
        Kind.QUEUED,
        Severity.CALM,
        "queued",
        "Queued",
        seen.say("Due now: the next free worker takes it."),
        seen.say(*rest),
    )


# -- paused -----------------------------------------------------------------------------------------------------------


def _sleeping(seen: Seen) -> Verdict:
    wake = seen.workflow.wake_at
    assert wake
    return Verdict(
        Kind.SLEEPING,
        Severity.CALM,
        "paused",
        "Sleeping",
        seen.say("Sleeping until ", until(wake), "."),
        seen.say("It wakes by itself ", ago(wake), " and goes on where it stopped; it costs nothing meanwhile."),
        at=wake,
    )


def _retrying(seen: Seen) -> Verdict:
    wake = seen.workflow.wake_at
    assert wake
    step = next((step for step in seen.waits if step.kind == Step.Kind.STEP), None)
    if step is None:
        headline = seen.say("Retrying ", ago(wake), ".")
        return Verdict(Kind.RETRYING, Severity.CALM, "paused", "Retrying", headline, seen.say(), at=wake)
    rest: list[Part] = ["Finished steps do not run again."]
    if message := (step.error or {}).get("message"):
        rest = [f"It failed {times(step.failures)}, last with ", f"{(step.error or {}).get('type', 'an error')}: "]
        rest.append(stop(str(message)[:300]))
    return Verdict(
        Kind.RETRYING,
        Severity.CALM,
        "paused",
        "Retrying",
        seen.say("Try ", str(step.attempt + 1), " of ", Name(step.name), " begins ", ago(step.wake_at or wake), "."),
        seen.say(*rest),
        step.name,
        wake,
    )


def _pended(seen: Seen) -> Verdict:
    step = next((step for step in seen.waits if step.basket), None)
    basket = step.basket if step else seen.workflow.basket
    since = step.began_at if step and step.began_at else seen.told.at if seen.told else None
    ends: list[Part] = _ends(step, seen.workflow.wake_at)
    if step is not None and step.kind == Step.Kind.SIGNAL:
        named = basket.removeprefix("signal:")
        waited: list[Part] = [" since ", until(since)] if since else []
        headline = seen.say("Waiting for the signal ", Name(named), *waited, ".")
        rest = seen.say("It goes on when the signal comes.", *ends)
        return Verdict(Kind.SIGNAL, Severity.CALM, "paused", "Waiting", headline, rest, basket, seen.workflow.wake_at)
    if kind_of(basket) in REVIEWED:
        return _review(seen, step, basket)
    waited = [" for ", lasting(since)] if since else []
    forgotten = since is not None and seen.now - since > PATIENCE
    return Verdict(
        Kind.BASKET,
        Severity.ACT if forgotten else Severity.CALM,
        "paused",
        "For people" if forgotten else "Pended",
        seen.say("In basket ", Name(basket), *waited, ": a person has to resume it."),
        seen.say("Resume it here, perhaps with other variables or a result.", *ends),
        basket,
        seen.workflow.wake_at,
    )


def for_people(seen: Seen) -> Verdict | None:
    """Whatever its other paths do: somebody has to look at one of them, or should have long ago."""
    for step in seen.waits:
        if step.kind == Step.Kind.SIGNAL or not step.basket:
            continue
        if kind_of(step.basket) in REVIEWED:
            return _review(seen, step, step.basket)
        if step.began_at and seen.now - step.began_at > PATIENCE:
            return _pended(seen)
    return None


def _review(seen: Seen, step: Step | None, basket: str) -> Verdict:
    crashed = step is not None and (step.error or {}).get("type") == "Crashed"
    if step and crashed:
        what: list[Part] = ["its worker died in ", Name(step.name), ", and whether it took effect is unknown"]
    elif step:
        what = [Name(step.name), " went wrong"]
    else:
        what = ["something of it went wrong"]
    then = "Find out, then resume it: to run the step again, or as done if its work was done."
    return Verdict(
        Kind.UNCERTAIN if crashed else Kind.REVIEW,
        Severity.ACT,
        "orphan",
        "Uncertain" if crashed else "Held for review",
        seen.say("Held for review in ", Name(basket), ": ", *what, "."),
        seen.say(then),
        step.name if step else basket,
    )


def _suspended(seen: Seen) -> Verdict:
    error = seen.workflow.error or {}
    if error.get("type") == "CorruptState":
        return Verdict(
            Kind.CORRUPT,
            Severity.ACT,
            "failed",
            "Beyond repair",
            seen.say("Beyond repair: ", stop(str(error.get("message", ""))[:300])),
            seen.say("Restore it from a backup, or fail it and reopen it with a ticket."),
        )
    data = seen.told.data if seen.told else {}
    why = f": {data['reason']}" if data.get("reason") else ""
    since: list[Part] = [" ", ago(seen.told.at)] if seen.told else []
    return Verdict(
        Kind.SUSPENDED,
        Severity.CALM,
        "paused",
        "Suspended",
        seen.say(f"Suspended by {data.get('by') or 'an operator'}", *since, stop(why) if why else "."),
        seen.say("It goes on where it stopped when somebody resumes it."),
    )


def _blocked(seen: Seen) -> Verdict:
    message = str((seen.workflow.error or {}).get("message") or "the code does not fit what is recorded")[:300]
    wake = seen.workflow.wake_at
    looked: list[Part] = [" It is looked at again ", ago(wake), "."] if wake and wake > seen.now else []
    return Verdict(
        Kind.BLOCKED,
        Severity.ACT,
        "paused",
        "Blocked",
        seen.say("Blocked: ", stop(message)),
        seen.say("No attempt is burned; it continues by itself when a worker has code that fits.", *looked),
        message,
        wake,
    )


def _lane(seen: Seen) -> Verdict:
    return Verdict(
        Kind.LANE,
        Severity.CALM,
        "paused",
        "In lane",
        seen.say("In lane ", Name(seen.workflow.lane), ": it waits for the one before it."),
        seen.say("It starts when that one has ended."),
        seen.workflow.lane,
    )


# -- parts ------------------------------------------------------------------------------------------------------------


def _ends(step: Step | None, wake: datetime | None) -> list[Part]:
    at = (step.wake_at if step else None) or wake
    return [" If nobody comes, its time is over ", ago(at), "."] if at else []

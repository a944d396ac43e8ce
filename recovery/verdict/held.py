"""Running: somebody holds it, or held it and died."""

from datetime import datetime, timedelta

from django.utils.dateparse import parse_datetime

from workflows.conf import settings
from workflows.models import Worker

from ..models.recovery import Finding, Outcome
from ..sentences import Name, Part, Sentence, ago, count, lasting, listed
from ..words import duration
from .seen import Kind, Seen, Severity, Verdict
from .waiting import AT_ONCE, for_people, hindrance


def held(seen: Seen) -> Verdict:
    worker = seen.workflow.worker
    if worker is None:
        return _orphan(seen)
    if worker.ended_at:
        return _left(seen, worker)
    if not seen.locked or (seen.now - worker.heartbeat_at).total_seconds() >= settings().stale_after:
        return _silent(seen, worker)
    if seen.workflow.asked:
        return _asked(seen, worker, seen.workflow.asked)
    if found := _over(seen) or for_people(seen):
        return found
    if _is_again(seen):
        return _again(seen, worker)
    return Verdict(
        Kind.RUNNING,
        Severity.CALM,
        "running",
        "Running",
        seen.say("Held by ", Name(str(worker)), ", last heard ", ago(worker.heartbeat_at), *_where(seen), "."),
        _after(seen),
        seen.open.name if seen.open else "",
    )


# -- alive ------------------------------------------------------------------------------------------------------------


def _where(seen: Seen) -> list[Part]:
    if seen.open is None:
        return [", between steps"]
    since: list[Part] = [" for ", lasting(seen.open.began_at)] if seen.open.began_at else []
    return [", in step ", Name(seen.open.name), *since]


def _after(seen: Seen) -> Sentence:
    step = seen.open
    waits = len(seen.waits)
    parts: list[Part] = []
    told = seen.workflow.progress or {}
    if told.get("total"):
        parts.append(f"{told.get('done', 0)} of {told['total']} are done. ")
    if step is None:
        parts.append("Its next step begins at once.")
    elif step.failures:
        parts.append(f"This is try {step.attempt}; it failed {count(step.failures, 'time')} before.")
    else:
        parts.append("The next step begins when this one ends; if its worker dies, another takes over.")
    if waits:
        parts.append(f" {count(waits, 'other path')} of it wait{'s' if waits == 1 else ''}.")
    return seen.say(*parts)


def _over(seen: Seen) -> Verdict | None:
    limit = (seen.policy.run_limit if seen.policy else None) or seen.workflow.run_limit
    began = seen.workflow.running_at
    if not limit or not began or seen.now - began <= timedelta(seconds=limit):
        return None
    does = seen.policy.on_run_limit if seen.policy else "flag"
    if does == "recover" and seen.mode != "enforce":
        does = "flag"
    then = {
        "flag": "Nothing is done about it but to say so: look at it, then fail it or let it run.",
        "extend": "Its policy lets it run on.",
        "recover": "Its policy has it taken over by another worker.",
        "fail": "Its policy fails it.",
    }[does]
    return Verdict(
        Kind.OVERRUNNING,
        Severity.ACT if does == "flag" else Severity.WATCH,
        "orphan",
        "Overrunning",
        seen.say(
            f"Overrunning: it may run {duration(limit)}, and has been running for ", lasting(began), *_where(seen), "."
        ),
        seen.say(then),
        seen.open.name if seen.open else "",
    )


def _is_again(seen: Seen) -> bool:
    rescue, began = seen.rescue, seen.workflow.running_at
    if rescue is None or began is None or rescue.detected_at > began:
        return False
    return rescue.outcome == Outcome.PENDING or seen.workflow.recovery_attempts > 0


def _again(seen: Seen, worker: Worker) -> Verdict:
    """It runs, and what it survived is still worth telling: nothing has been finished since."""
    rescue, workflow = seen.rescue, seen.workflow
    assert rescue
    assert workflow.running_at
    died = rescue.last_seen_at or rescue.detected_at
    headline: list[Part] = ["Running again."]
    if rescue.worker_name:
        later = duration((workflow.running_at - died).total_seconds())
        lost = "gave it up" if rescue.finding == Finding.OVERRUNNING else "died"
        headline += [" Worker ", Name(rescue.worker_name), f" {lost} ", ago(died), "; "]
        headline += [Name(str(worker)), f" took over {later} later."]
    else:
        headline += [f" {rescue.actor or 'An operator'} recovered it ", ago(rescue.detected_at), "."]
    kept = rescue.plan.get("kept", 0)
    rest: list[Part] = [f"{count(kept, 'finished step')} {'was' if kept == 1 else 'were'} kept."]
    if seen.open:
        nth = {2: "a second", 3: "a third"}.get(seen.open.attempt, f"time {seen.open.attempt}, a further")
        rest += [" ", Name(seen.open.name), " is running"]
        rest += [f" {nth} time with the same idempotency key."] if seen.open.attempt > 1 else ["."]
    rest.append(f" Recovery {rescue.attempt} of {rescue.max_attempts}.")
    return Verdict(
        Kind.RECOVERING,
        Severity.CALM,
        "running",
        "Running",
        seen.say(*headline),
        seen.say(*rest),
        seen.open.name if seen.open else "",
    )


def _asked(seen: Seen, worker: Worker, asked: dict[str, str]) -> Verdict:
    cancel = asked["what"] == "cancel"
    at = parse_datetime(asked.get("at", "")) or seen.now
    why = f" ({asked['reason']})" if asked.get("reason") else ""
    word = "Cancelling" if cancel else "Pausing"
    headline: list[Part] = [f"{word}: {asked.get('by') or 'somebody'} asked for it ", ago(at), f"{why}; "]
    headline += [Name(str(worker)), " carries it out before its next step."]
    rest: list[Part] = ["If its worker dies first, that is carried out by whoever finds it."]
    if seen.open and seen.open.began_at:
        rest = [Name(seen.open.name), " has been running for ", lasting(seen.open.began_at), "; its result is kept. "]
        rest += ["No further step begins."]
    kind = Kind.CANCELLING if cancel else Kind.PAUSING
    return Verdict(kind, Severity.CALM, "cancelled" if cancel else "paused", word, seen.say(*headline), seen.say(*rest))


# -- dead, or said to be ----------------------------------------------------------------------------------------------


def _silent(seen: Seen, worker: Worker) -> Verdict:
    headline: list[Part] = ["Silent: ", Name(str(worker)), " was last heard ", ago(worker.heartbeat_at), *_where(seen)]
    ends = worker.heartbeat_at + timedelta(seconds=settings().stale_after)
    if not seen.locked:
        rest: list[Part] = ["Its process has let go of its lock: it is declared dead at the next look."]
    elif seen.now < ends:
        rest = ["It is declared dead if it stays silent, ", ago(ends), "."]
    else:
        rest = [f"It is declared dead at the next look: {settings().stale_after:g} s of silence are over."]
    others = seen.live_workers - (seen.now < ends)  # it is still among those that live
    if others <= 0:
        rest.append(" No other worker lives to take over: start one.")
    else:
        rest.append(" Then another worker takes over.")
    severity = Severity.ACT if others <= 0 else Severity.WATCH
    return Verdict(Kind.SILENT, severity, "orphan", "Silent", seen.say(*headline, "."), seen.say(*rest), str(worker))


def _left(seen: Seen, worker: Worker) -> Verdict:
    """Its worker has ended, and its mode or policy keeps it from being taken over now."""
    workflow, died = seen.workflow, worker.last_seen_at or worker.ended_at or seen.now
    headline: list[Part] = ["Orphan: its worker ", Name(str(worker)), " died ", ago(died)]
    patience = seen.policy.stale_after if seen.policy and seen.policy.stale_after else workflow.stale_after
    due = died + timedelta(seconds=patience or 0)
    spent = workflow.recovery_attempts >= workflow.max_recovery_attempts
    nth = f"recovery {workflow.recovery_attempts + 1} of {workflow.max_recovery_attempts}"
    if seen.mode != "enforce":
        does = "found and shown" if seen.mode == "observe" else "not looked for"
        headline += [f"; the mode is {seen.mode}, so it waits until somebody recovers it."]
        rest = seen.say(f"In this mode orphans are {does}, not repaired. ", *_plan(seen), ".")
        return Verdict(Kind.LEFT, Severity.ACT, "orphan", "Orphan", seen.say(*headline), rest, seen.mode)
    if spent:
        headline += ["; it is given up at the next look."]
    elif due > seen.now:
        headline += [f"; it asks for {duration(patience or 0)} of patience, {nth} is due ", ago(due), "."]
    else:
        headline += [f"; {nth} is due at the next look."]
    return Verdict(
        Kind.ORPHAN,
        Severity.ACT if spent else Severity.WATCH,
        "orphan",
        "Orphan",
        seen.say(*headline),
        seen.say(*_sentence(_plan(seen)), "."),
        seen.open.name if seen.open else "",
        due if due > seen.now else None,
    )


def _orphan(seen: Seen) -> Verdict:
    workflow, rescue = seen.workflow, seen.rescue
    assert workflow.wake_at
    died: datetime = (rescue and rescue.last_seen_at) or workflow.running_at or workflow.wake_at
    name: list[Part] = [" ", Name(rescue.worker_name)] if rescue and rescue.worker_name else []
    headline: list[Part] = ["Orphan: its worker", *name, " died ", ago(died)]
    if rescue and rescue.finding == Finding.OVERRUNNING:
        headline = [
            "Orphan: ",
            Name(rescue.worker_name),
            " gave it up ",
            ago(rescue.detected_at),
            ", past its run limit",
        ]
    elif rescue is None and seen.told and seen.told.type == "workflow.adopted":
        headline = ["Orphan: it was begun elsewhere and adopted ", ago(seen.told.at)]
    headline.append(f"; recovery {workflow.recovery_attempts + 1} of {workflow.max_recovery_attempts} ")
    why = hindrance(seen)
    if workflow.wake_at > seen.now + AT_ONCE:
        headline += ["starts ", ago(workflow.wake_at)]
    elif why:
        headline += ["waits: ", *why.because]
    else:
        headline.append("starts now")
    rest: list[Part] = ["The next free worker takes it; finished steps do not run again."]
    if why:
        rest = list(why.then)
    elif rescue and rescue.step:
        rest = ["It was lost ", "in " if rescue.in_step else "after ", Name(rescue.step)]
        rest += ["; finished steps do not run again."]
    return Verdict(
        Kind.ORPHAN,
        Severity.ACT if why and why.severity == Severity.ACT else Severity.WATCH,
        "orphan",
        "Orphan",
        seen.say(*headline, "; ", *_plan(seen), "."),
        seen.say(*rest),
        seen.open.name if seen.open else rescue.step if rescue else "",
        workflow.wake_at if workflow.wake_at > seen.now else None,
    )


def _plan(seen: Seen) -> list[Part]:
    """4 steps are kept, charge_card runs again (not declared idempotent)."""
    plan = seen.plan
    parts: list[Part] = [f"{count(plan.kept, 'step')} {'is' if plan.kept == 1 else 'are'} kept"]
    for step in plan.broken:
        parts += [", ", Name(step.name), str(step).removeprefix(step.name)]
    if not plan.broken and plan.after:
        parts += [", it goes on after ", *listed([plan.after])]
    return parts


def _sentence(parts: list[Part]) -> list[Part]:
    first = parts[0]
    return [first[:1].upper() + first[1:], *parts[1:]] if isinstance(first, str) else parts

"""Rekindle itself: what is wrong with it, or set so that less happens than one would think."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from workflows.models import Policy

from ..sentences import Part, Sentence, ago, lasting
from .seen import Kind, Severity, Verdict

SCHEDULER_SILENT = timedelta(minutes=5)
MODES = {"observe": "orphans are found and shown, not repaired", "off": "orphans are not looked for"}


@dataclass(frozen=True, slots=True)
class Whole:
    """The installation at one moment."""

    now: datetime
    live_workers: int
    scheduler_ran: datetime | None  # None: never yet. A project that has just been installed is not broken.
    mode: str  # of the settings
    policies: Sequence[Policy] = ()  # that pause a name, or do not enforce

    def say(self, *parts: Part) -> Sentence:
        return Sentence(parts, self.now)


def of_whole(whole: Whole) -> list[Verdict]:
    """The worst first; nothing if all is well."""
    found = [_workers(whole), _scheduler(whole), _mode(whole), *(_policy(whole, each) for each in whole.policies)]
    return [verdict for verdict in found if verdict]


def _workers(whole: Whole) -> Verdict | None:
    if whole.live_workers:
        return None
    headline = whole.say("No worker is alive: nothing runs until one starts.")
    return Verdict(Kind.NO_WORKER, Severity.ACT, "failed", "No worker", headline, whole.say())


def _scheduler(whole: Whole) -> Verdict | None:
    ran = whole.scheduler_ran
    if ran is None or whole.now - ran < SCHEDULER_SILENT:
        return None
    headline = whole.say(
        "Scheduler appears to be down: last run ",
        ago(ran),
        " (expected every minute).",
        " Workers have taken over its duties."
        if whole.live_workers
        else " Nobody looks for the dead, and nobody judges alerts.",
    )
    return Verdict(Kind.NO_SCHEDULER, Severity.ACT, "orphan", "No scheduler", headline, whole.say())


def _mode(whole: Whole) -> Verdict | None:
    if whole.mode not in MODES:
        return None
    headline = whole.say(f"Recovery is in mode {whole.mode}: {MODES[whole.mode]}.")
    return Verdict(Kind.NOT_ENFORCED, Severity.WATCH, "orphan", "Watching", headline, whole.say(), whole.mode)


def _policy(whole: Whole, policy: Policy) -> Verdict:
    """By whom, and since when."""
    what = "is paused: new work is accepted and not started" if policy.paused else f"is in mode {policy.mode}"
    who = "Every name" if policy.name == "*" else policy.name
    by = f", by {policy.changed_by}" if policy.changed_by else ""
    since: list[Part] = [f"{by}, for ", lasting(policy.changed_at)] if policy.changed_at else [by]
    why = f": {policy.reason}" if policy.reason else ""
    kind = Kind.NAME_PAUSED if policy.paused else Kind.NOT_ENFORCED
    headline = whole.say(f"{who} {what}", *since, why)
    return Verdict(kind, Severity.WATCH, "paused", "Paused", headline, whole.say(), policy.name)

"""What is wrong with Rekindle itself, in sentences, for the top of every page."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from workflows.conf import settings
from workflows.models import Policy, Worker

from .models import Duty
from .models.recovery import DetectedBy
from .words import duration

SCHEDULER_SILENT = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Strip:
    text: str
    state: str = "orphan"
    since: datetime | None = None
    page: str = ""  # the rail's name of the page that tells more


def strips() -> list[Strip]:
    now = timezone.now()
    return [strip for strip in (_workers(), _scheduler(now), _mode(), *_policies()) if strip]


def _workers() -> Strip | None:
    if Worker.objects.using(settings().database).filter(ended_at=None).exists():
        return None
    return Strip("No worker is alive: nothing runs until one starts.", "failed", page="workers")


def _scheduler(now: datetime) -> Strip | None:
    """Silent until it ran once: a project that has just been installed is not broken."""
    ran = (
        Duty.objects.using(settings().database)
        .filter(name="sweep", ran_by=DetectedBy.SCHEDULED_TASK)
        .order_by("-began_at")
        .values_list("began_at", flat=True)
        .first()
    )
    if ran is None or now - ran < SCHEDULER_SILENT:
        return None
    ago = duration((now - ran).total_seconds())
    return Strip(f"Scheduler appears to be down: last run {ago} ago (expected every minute).", page="workers")


def _mode() -> Strip | None:
    mode = settings().mode
    if mode == "enforce":
        return None
    does = "found and shown, not repaired" if mode == "observe" else "not looked for"
    return Strip(f"Recovery is in mode {mode}: orphans are {does}.", page="recovery")


def _policies() -> list[Strip]:
    changed = Policy.objects.using(settings().database).filter(Q(paused=True) | Q(mode__in=["observe", "off"]))
    return [_policy(policy) for policy in changed.order_by("name")[:5]]


def _policy(policy: Policy) -> Strip:
    what = "is paused: new work is accepted and not started" if policy.paused else f"is in mode {policy.mode}"
    by = f", by {policy.changed_by}" if policy.changed_by else ""
    return Strip(f"{policy.name} {what}{by}", "paused", policy.changed_at)

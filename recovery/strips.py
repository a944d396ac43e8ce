"""What is wrong with Rekindle itself, in sentences, for the top of every page; in one round trip."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from workflows.conf import settings

from .queries.together import Rows, together
from .words import duration

SCHEDULER_SILENT = timedelta(minutes=5)

ALIVE = "SELECT EXISTS (SELECT FROM rekindle_worker WHERE ended_at IS NULL) AS alive"
RAN = """SELECT began_at FROM rekindle_recovery_duty WHERE name = 'sweep' AND ran_by = 'scheduled task'
ORDER BY began_at DESC LIMIT 1"""
CHANGED = """SELECT name, paused, mode, changed_by, changed_at FROM rekindle_policy
WHERE paused OR mode IN ('observe', 'off') ORDER BY name LIMIT 5"""


@dataclass(frozen=True, slots=True)
class Strip:
    text: str
    state: str = "orphan"
    since: datetime | None = None
    page: str = ""  # the rail's name of the page that tells more


def strips() -> list[Strip]:
    found = together({}, workers=ALIVE, ran=RAN, changed=CHANGED)
    policies = [_policy(row) for row in found["changed"]]
    here = (_workers(found["workers"]), _scheduler(found["ran"], timezone.now()), _mode(), *policies)
    return [strip for strip in here if strip]


def _workers(found: Rows) -> Strip | None:
    if found[0]["alive"]:
        return None
    return Strip("No worker is alive: nothing runs until one starts.", "failed", page="workers")


def _scheduler(found: Rows, now: datetime) -> Strip | None:
    """Silent until it ran once: a project that has just been installed is not broken."""
    ran = datetime.fromisoformat(found[0]["began_at"]) if found else now
    if now - ran < SCHEDULER_SILENT:
        return None
    ago = duration((now - ran).total_seconds())
    return Strip(f"Scheduler appears to be down: last run {ago} ago (expected every minute).", page="workers")


def _mode() -> Strip | None:
    mode = settings().mode
    if mode == "enforce":
        return None
    does = "found and shown, not repaired" if mode == "observe" else "not looked for"
    return Strip(f"Recovery is in mode {mode}: orphans are {does}.", page="recovery")


def _policy(row: dict[str, Any]) -> Strip:
    what = "is paused: new work is accepted and not started" if row["paused"] else f"is in mode {row['mode']}"
    by = f", by {row['changed_by']}" if row["changed_by"] else ""
    return Strip(f"{row['name']} {what}{by}", "paused", datetime.fromisoformat(row["changed_at"]))

"""What surrounds the workflows: workers, policies, duties, alerts, the audit, and the people who look."""

import random
from datetime import datetime, timedelta

from django.contrib.auth.models import Group, User

from recovery.duties import DUTIES
from recovery.models import Alert, AlertRule, AuditEntry, Duty
from workflows.models import Policy, Worker

from .sheets import Sheet
from .stories import host
from .world import NAMES, SPAN, Size

DUTY_DAYS = 7  # after which retention forgets a run that found nothing


def workers(url: str, size: Size, now: datetime) -> None:
    """Those that died, one after the other, and those that live; each of these has all its slots taken."""
    # fmt: off
    sheet = Sheet(url, Worker, "id", "host", "pid", "version", "release", "slots", "knows", "started_at", "heartbeat_at", "memory",
        "last_seen_at", "ended_at", "ended_why")
    # fmt: on
    slots = -(-size.states["running"] // size.workers)
    knows = {name: [3, "f" * 16] for name in NAMES}
    for number in range(1, size.deaths + size.workers + 1):
        alive = number > size.deaths
        died = now - SPAN * (1 - number / (size.deaths + 1)) ** 2 if not alive else None
        began = now - timedelta(hours=5) if alive else (died or now) - timedelta(hours=9)
        release = f"2026.{number * 20 // (size.deaths + size.workers)}"
        seen = now if alive else died
        why = "" if alive else "died"
        sheet.row(
            number,
            host(number),
            1000 + number,
            "0.1",
            release,
            slots,
            knows,
            began,
            seen,
            90_000_000,
            None if alive else died,
            died,
            why,
        )
    sheet.close()


def policies() -> None:
    Policy.objects.create(name="import_catalogue", concurrency=50, changed_by="ada", reason="the shop is slow")
    Policy.objects.create(name="newsletter", paused=True, changed_by="ada", reason="until Monday")
    Policy.objects.create(name="report", run_limit=600, changed_by="otto")
    Policy.objects.create(name="year_end", max_recovery_attempts=5, keep_finished=400 * 86400, changed_by="ada")


def duties(url: str, now: datetime) -> None:
    """A run of each every minute; now and then a sweep found somebody."""
    sheet = Sheet(url, Duty, "name", "ran_by", "began_at", "ended_at", "found", "recovered")
    for minute in range(DUTY_DAYS * 1440, 0, -1):
        for place, name in enumerate(DUTIES):
            began = now - timedelta(minutes=minute, seconds=-place)
            found = 50 if name == "sweep" and minute % 240 == 0 else 0
            sheet.row(name, "scheduled task", began, began + timedelta(seconds=0.1), found, found)
    sheet.close()


def alerts(url: str, size: Size, now: datetime) -> None:
    """Each opened and resolved. The rules that are past their thresholds open theirs when the duty runs."""
    sheet = Sheet(
        url, Alert, "rule_id", "rule_name", "severity", "threshold", "value", "peak", "opened_at", "resolved_at"
    )
    rules = list(AlertRule.objects.order_by("pk"))
    for number in range(size.alerts):
        rule = rules[number % len(rules)]
        opened = now - SPAN * (1 - number / size.alerts)
        sheet.row(
            rule.pk, rule.name, rule.severity, rule.threshold, 12, 14, opened, opened + timedelta(seconds=0.8 * 60)
        )
    sheet.close()


def audit(url: str, size: Size, now: datetime) -> None:
    chance = random.Random(size.audit)
    # fmt: off
    sheet = Sheet(url, AuditEntry, "at", "actor", "via", "act", "subject", "subject_id", "subject_name", "reason", "before", "after",
        "refused")
    # fmt: on
    for number in range(size.audit):
        act = chance.choice(("recover", "fail", "cancel", "pause", "resume", "revive"))
        name = chance.choice(list(NAMES))
        sheet.row(
            now - SPAN * (1 - number / size.audit),
            chance.choice(("ada", "otto", "vera", "zoe")),
            chance.choice(("page", "admin", "cli")),
            act,
            "workflow",
            f"{chance.getrandbits(128):032x}",
            f"{name} {number}",
            "because it hung",
            {"status": "running", "fence": 1},
            {"status": "queued", "fence": 2},
            "" if number % 9 else "It has ended already.",
        )
    sheet.close()


def people() -> None:
    """One who acts, one who configures and may see Django's admin. Their permissions come from their groups."""
    for name, role in (("otto", "Rekindle operator"), ("ada", "Rekindle admin")):
        user = User.objects.create_user(name, is_staff=role.endswith("admin"))
        user.groups.add(Group.objects.get(name=role))

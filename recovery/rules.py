"""The alert rules that are there from the start. What an operator changes in them stays; a deleted one comes back."""

from typing import Any

from workflows.conf import settings

from .models import AlertRule

MINUTE, HOUR = 60, 3600

BUILTIN: dict[str, dict[str, Any]] = {
    # Seed 0 (S0-096 to S0-099)
    "recoveries": {"name": "Many recoveries", "metric": "recovery.triggered", "threshold": 10},
    "recovery_failed": {"name": "A recovery failed", "metric": "recovery.failed", "threshold": 0},
    "attempts_exhausted": {
        "name": "Recovery attempts exhausted",
        "metric": "recovery.max_attempts_exceeded",
        "threshold": 0,
        "severity": "critical",
    },
    "stale": {"name": "Work was stale for long", "metric": "stale_duration", "threshold": 5 * MINUTE},
    # Seed 2 (S2-074, S2-075)
    "late": {
        "name": "Recovery mode detected",
        "metric": "late",
        "threshold": 10,
        "resolve_at": 0,
        "window": 5 * MINUTE,
    },
    "scheduler_silent": {
        "name": "Scheduler appears to be down",
        "metric": "scheduler_silence",
        "threshold": 5 * MINUTE,
        "resolve_at": 2 * MINUTE,
        "severity": "critical",
    },
    # And what no seed names
    "no_worker": {
        "name": "No worker is alive",
        "metric": "workers_alive",
        "comparison": "<",
        "threshold": 1,
        "lasting": 30,
        "severity": "critical",
    },
    "dead_letters": {"name": "There are dead letters", "metric": "dead_letters", "threshold": 0},
    "needs_people": {"name": "Held, blocked or beyond repair", "metric": "needs_people", "threshold": 0},
    "overdue": {"name": "Overdue without a reason", "metric": "overdue", "threshold": 0, "severity": "critical"},
}


def install() -> None:
    """Those that are not there. The name is unique: two who install at once make one."""
    rules = AlertRule.objects.using(settings().database)
    there = set(rules.exclude(builtin="").values_list("builtin", flat=True))
    missing = [AlertRule(builtin=key, window=HOUR) for key in BUILTIN if key not in there]
    for rule in missing:
        for field, value in BUILTIN[rule.builtin].items():
            setattr(rule, field, value)
    rules.bulk_create(missing, ignore_conflicts=True)

"""How a recovery is told: its outcome with a state mark, its plan in words. Pure."""

from collections.abc import Mapping
from typing import Any

NAMED = 3  # steps

OUTCOMES = {
    "pending": ("orphan", "Under way"),
    "recovered": ("completed", "Recovered"),
    "failed": ("failed", "Then failed"),
    "died_again": ("failed", "Died again"),
    "gave_up": ("failed", "Given up"),
    "refused": ("failed", "Refused"),
    "cancelled": ("cancelled", "Cancelled"),
    "observed": ("paused", "Observed"),
}
FOUND = {
    "dead_worker": "its worker died",
    "silent_worker": "its worker went silent",
    "overdue": "it was overdue",
    "overrunning": "it ran too long",
    "definition_missing": "its code was missing",
    "definition_changed": "its code had changed",
    "corrupt_state": "its record did not fit together",
    "by_hand": "somebody asked",
}
REASONS = {
    "infrastructure_restart": "Infrastructure restart",
    "stale_detection": "Stale detection",
    "manual": "By hand",
}


def plan_in_words(plan: Mapping[str, Any]) -> str:
    """2 steps kept; charge_card runs again."""
    kept = plan.get("kept")
    if kept is None:
        return "left as it is"
    again = [str(step["name"]) for step in plan.get("again") or []]
    said = f"{kept} step{'' if kept == 1 else 's'} kept"
    if not again:
        return f"{said}; goes on from there" if kept else f"{said}; begins again"
    names = ", ".join(again[:NAMED]) + (f" and {len(again) - NAMED} more" if len(again) > NAMED else "")
    return f"{said}; {names} {'runs' if len(again) == 1 else 'run'} again"

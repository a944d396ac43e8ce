"""The settings in force, each with where it came from."""

import os
from dataclasses import dataclass
from typing import Any

from django.conf import settings as django_settings

from workflows.conf import KEYS, settings

from .words import duration

SECONDS = (
    "STALE_AFTER",
    "HANG_AFTER",
    "BODY_IDLE_IN_TRANSACTION",
    "KEEP_FINISHED",
    "KEEP_HISTORY",
    "RESTART_GRACE",
    "GRACE",
)


@dataclass(frozen=True, slots=True)
class InForce:
    name: str
    value: Any
    source: str  # environment, REKINDLE, default

    @property
    def said(self) -> str:
        if isinstance(self.value, bool):
            return "on" if self.value else "off"
        return "–" if self.value in (None, "", (), {}) else str(self.value)

    @property
    def lasting(self) -> str:
        """A long time in words: nobody reads 34560000."""
        long = isinstance(self.value, (int, float)) and self.name in SECONDS and self.value >= 60
        return duration(self.value) if long else ""


def in_force() -> list[InForce]:
    return [InForce(name.upper(), getattr(settings(), name), _source(name.upper())) for name in KEYS]


def _source(key: str) -> str:
    """In the order in which conf.settings() looks."""
    if f"REKINDLE_{key}" in os.environ:
        return "environment"
    return "REKINDLE" if key in getattr(django_settings, "REKINDLE", {}) else "default"

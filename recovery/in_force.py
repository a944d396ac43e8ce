"""The settings in force, each with where it came from."""

import os
from dataclasses import dataclass
from typing import Any

from django.conf import settings as django_settings

from workflows.conf import KEYS, settings


@dataclass(frozen=True, slots=True)
class InForce:
    name: str
    value: Any
    source: str  # environment, REKINDLE, default


def in_force() -> list[InForce]:
    return [InForce(name.upper(), getattr(settings(), name), _source(name.upper())) for name in KEYS]


def _source(key: str) -> str:
    """In the order in which conf.settings() looks."""
    if f"REKINDLE_{key}" in os.environ:
        return "environment"
    return "REKINDLE" if key in getattr(django_settings, "REKINDLE", {}) else "default"

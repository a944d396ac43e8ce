"""One typed place for every setting: the host's `REKINDLE` dict, each key overridable by `REKINDLE_<KEY>` in the environment.

Durations are seconds, fractions allowed. Read them as `conf.settings().stale_after`.
"""

import os
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from functools import cache
from typing import Any

from django.conf import settings as django_settings
from django.core.signals import setting_changed

ELSEWHERE = {"REKINDLE_DATA", "REKINDLE_ENV", "REKINDLE_SECRET_KEY"}  # read by the project, not by the engine


@dataclass(frozen=True, slots=True)
class Settings:
    database: str = "default"
    modules: tuple[str, ...] = ()  # definitions outside the installed apps' workflows.py
    release: str = ""  # what the host calls its deployed version

    heartbeat: float = 10  # how often a worker says that it lives
    stale_after: float = 30  # a worker silent for this long is dead
    sweep_every: float = 0.25  # how often a worker looks out for dead ones; 0: it leaves that to the scheduled task
    death_gap: float = 0.5  # a lock must be free at two looks this far apart
    restart_grace: float = 5  # after a database restart nobody is dead before that
    recovery_delay: float = 0.1
    max_recovery_attempts: int = 3
    mode: str = "enforce"  # enforce, observe, off
    startup_sweep: bool = True

    grace: float = 30  # what running steps get on SIGTERM
    poll: float = 1  # the truth behind NOTIFY
    show_start_after: float = 0.05  # a step shorter than this has no start of its own in the diary
    hang_after: float = 60  # a worker process that does not answer its supervisor for this long is replaced
    body_connections: int = 8  # database connections that step bodies of one process share
    body_idle_in_transaction: float = 60  # a body's open transaction that idles for this long is rolled back; 0: never

    max_value_bytes: int = 1_000_000
    max_value_depth: int = 100
    keep_finished: float = 30 * 86400
    keep_history: float = 400 * 86400
    baskets: Mapping[str, str] | None = None  # basket name -> human, retry, hold, pause, error
    log_url: str = ""
    cluster: str = ""  # the django-q2 cluster that runs the duties; empty: the default one


KEYS = {field.name: field for field in fields(Settings)}


@cache
def settings() -> Settings:
    host: Mapping[str, Any] = getattr(django_settings, "REKINDLE", {})
    values: dict[str, Any] = {}
    for name, field in KEYS.items():
        if (text := os.environ.get(f"REKINDLE_{name.upper()}")) is not None:
            values[name] = _read(field, text)
        elif name.upper() in host:
            values[name] = host[name.upper()]
    return Settings(**values)


def unknown_keys() -> list[str]:
    """What the host wrote in REKINDLE that means nothing here."""
    host: Mapping[str, Any] = getattr(django_settings, "REKINDLE", {})
    return sorted(key for key in host if key.lower() not in KEYS)


def _read(field: "Field[Any]", text: str) -> Any:
    default = field.default
    if isinstance(default, bool):
        return text.lower() in ("1", "true", "yes", "on")
    if isinstance(default, tuple):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if isinstance(default, str):
        return text
    if default is None:
        return dict(part.split("=", 1) for part in text.split(",") if part)
    return float(text) if field.type is float else int(float(text))  # 10 is a duration too, and 0.5 is not 0


def _forget(*, setting: str, **_: object) -> None:
    if setting == "REKINDLE":
        settings.cache_clear()


setting_changed.connect(_forget)

"""System checks, run by `manage.py check`, by the doctor and before a worker starts. None asks the database."""

import math
from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import connections, router

from .conf import KEYS, Settings, settings, unknown_keys
from .definitions import Definition, discover, duplicates

HTMX = "django_htmx.middleware.HtmxMiddleware"
PAGES_NEED = (
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "template_partials",
)
MODES = ("enforce", "observe", "off")


@register("rekindle")
def check_settings(**_: Any) -> list[CheckMessage]:
    return list(_settings())


@register("rekindle")
def check_installation(**_: Any) -> list[CheckMessage]:
    return list(_installation())


@register("rekindle")
def check_definitions(**_: Any) -> list[CheckMessage]:
    return list(_definitions())


def _settings() -> Iterator[CheckMessage]:
    for key in unknown_keys():
        known = ", ".join(name.upper() for name in KEYS)
        yield Warning(
            f"REKINDLE has a key {key!r} that means nothing here.", hint=f"Known are {known}.", id="rekindle.W001"
        )
    given = _readable()
    if given is None:
        yield Error(
            "A REKINDLE setting cannot be read.",
            hint="Durations and limits are numbers; look at REKINDLE and at the REKINDLE_ environment variables.",
            id="rekindle.E003",
        )
        return
    wrong = [name.upper() for name, field in KEYS.items() if not _fits(field.default, getattr(given, name))]
    for name in wrong:
        yield Error(f"REKINDLE {name} is not a number of its kind.", hint="Zero or more.", id="rekindle.E003")
    if given.mode not in MODES:
        yield Error(
            f"REKINDLE MODE is {given.mode!r}, so nothing would be recovered.",
            hint=f"Choose one of {', '.join(MODES)}.",
            id="rekindle.E004",
        )
    if not {"HEARTBEAT", "STALE_AFTER"} & set(wrong) and given.heartbeat >= given.stale_after:
        yield Warning(
            f"A worker beats every {given.heartbeat:g} s but is dead after {given.stale_after:g} s of silence.",
            hint="Make STALE_AFTER at least twice HEARTBEAT, or live workers are taken for dead.",
            id="rekindle.W004",
        )


def _installation() -> Iterator[CheckMessage]:
    given = _readable()
    if given is not None and given.database not in connections.settings:
        yield Error(
            f"REKINDLE DATABASE is {given.database!r}, which is not in DATABASES.",
            hint="Name one that is.",
            id="rekindle.E001",
        )
    elif given is not None and connections[given.database].vendor != "postgresql":
        yield Error(
            f"The engine's database {given.database!r} is not PostgreSQL.",
            hint="Set REKINDLE DATABASE to the alias of a PostgreSQL database.",
            id="rekindle.E001",
        )
    elif given is not None and router.db_for_write(apps.get_model("rekindle", "Workflow")) != given.database:
        yield Error(
            f"REKINDLE DATABASE is {given.database!r}, but no router sends the engine's models there.",
            hint='Add "workflows.routing.Router" to DATABASE_ROUTERS.',
            id="rekindle.E006",
        )
    if not apps.is_installed("recovery"):
        yield Warning(
            "The app recovery is not installed: nobody takes over what a dead worker held.",
            hint='Add "recovery" to INSTALLED_APPS.',
            id="rekindle.W002",
        )
    elif HTMX not in django_settings.MIDDLEWARE:
        yield Warning(
            "The pages need HtmxMiddleware, which is missing.", hint=f'Add "{HTMX}" to MIDDLEWARE.', id="rekindle.W003"
        )
    if apps.is_installed("recovery"):
        for app in PAGES_NEED:
            if not apps.is_installed(app):
                yield Error(
                    f"The pages need the app {app}, which is not installed.",
                    hint=f'Add "{app}" to INSTALLED_APPS.',
                    id="rekindle.E007",
                )
        if not apps.is_installed("django_q"):
            yield Warning(
                "django-q2 is not installed: while no worker lives, nobody looks for the dead.",
                hint='Add "django_q" to INSTALLED_APPS and run manage.py qcluster.',
                id="rekindle.W005",
            )
        elif not hasattr(django_settings, "Q_CLUSTER"):
            yield Warning(
                "Q_CLUSTER is not set, so django-q2 would look for a Redis.",
                hint='If there is none, set Q_CLUSTER = {"orm": "default"}.',
                id="rekindle.W006",
            )


def _definitions() -> Iterator[CheckMessage]:
    if _readable() is None:
        return
    try:
        discover()
    except Exception as error:
        yield Error(
            f"The workflows cannot be imported: {type(error).__name__}: {error}.",
            hint="Look at each app's workflows.py and at REKINDLE MODULES.",
            id="rekindle.E005",
        )
    for first, second in duplicates:
        yield Error(
            f"Two workflows are called {first.name!r}: {_place(first)} and {_place(second)}.",
            hint="Give one of them another name; what was started goes by its name.",
            id="rekindle.E002",
        )


def _readable() -> Settings | None:
    try:
        return settings()
    except (TypeError, ValueError):
        return None


def _fits(default: Any, value: Any) -> bool:
    """Numbers must be numbers. The rest is read as it is."""
    if isinstance(default, bool) or not isinstance(default, (int, float)):
        return True
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _place(definition: Definition) -> str:
    return f"{definition.function.__module__}.{definition.function.__qualname__}"

"""The system checks: each says what is wrong and what to do, and none asks the database."""

import pytest
from django.core.checks import run_checks
from django.db import connections

from workflows import checks as _  # noqa: F401  (registers them)
from workflows import conf, definitions
from workflows.definitions import Definition


def ids() -> list[str]:
    found = run_checks(tags=["rekindle"])
    assert all(message.hint and message.msg.endswith(".") for message in found)
    return [str(message.id) for message in found]


def test_this_project_is_in_order():
    assert ids() == []


def test_an_unknown_key_is_told(settings):
    settings.REKINDLE = {"HEARTBEATS": 3}

    assert ids() == ["rekindle.W001"]


def test_recovery_should_be_installed(settings):
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if not app.startswith("recovery")]

    assert ids() == ["rekindle.W002"]


def test_the_pages_need_their_middleware(settings):
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "htmx" not in name]

    assert ids() == ["rekindle.W003"]


@pytest.mark.parametrize("stale_after", [10, 5])
def test_a_heartbeat_must_be_shorter_than_the_threshold(settings, stale_after):
    settings.REKINDLE = {"HEARTBEAT": 10, "STALE_AFTER": stale_after}

    assert ids() == ["rekindle.W004"]


def test_the_engine_needs_postgres(settings, monkeypatch):
    monkeypatch.setattr(type(connections["default"]), "vendor", "sqlite")

    assert ids() == ["rekindle.E001"]


def test_the_engine_needs_a_database_that_is_configured(settings):
    settings.REKINDLE = {"DATABASE": "elsewhere"}

    assert ids() == ["rekindle.E001"]


def test_a_database_of_its_own_needs_the_router(settings, monkeypatch):
    monkeypatch.setitem(connections.settings, "engine", connections.settings["default"])
    settings.REKINDLE = {"DATABASE": "engine"}
    assert ids() == ["rekindle.E006"]

    settings.DATABASE_ROUTERS = ["workflows.routing.Router"]

    assert ids() == []


@pytest.mark.parametrize(
    ("app", "said"), [("template_partials", "E007"), ("django_htmx", "E007"), ("django_q", "W005")]
)
def test_the_pages_need_their_apps(settings, app, said):
    settings.INSTALLED_APPS = [name for name in settings.INSTALLED_APPS if name != app]

    assert ids() == [f"rekindle.{said}"]


def test_a_host_new_to_django_q2_is_told_about_its_queue(settings):
    del settings.Q_CLUSTER

    assert ids() == ["rekindle.W006"]


def test_two_workflows_of_one_name_are_told(monkeypatch):
    twice = (Definition("order", test_this_project_is_in_order), Definition("order", ids))
    monkeypatch.setattr(definitions, "duplicates", [])
    monkeypatch.setattr("workflows.checks.duplicates", [twice])

    assert ids() == ["rekindle.E002"]


@pytest.mark.parametrize("value", ["10", None, True, -1, float("nan")])
def test_a_duration_must_be_a_number(settings, value):
    settings.REKINDLE = {"HEARTBEAT": value}

    assert ids() == ["rekindle.E003"]


def test_an_environment_that_cannot_be_read_is_told(monkeypatch):
    monkeypatch.setenv("REKINDLE_HEARTBEAT", "often")
    conf.settings.cache_clear()

    assert ids() == ["rekindle.E003"]

    monkeypatch.undo()
    conf.settings.cache_clear()


def test_a_misspelt_mode_is_told_because_it_would_recover_nothing(settings):
    settings.REKINDLE = {"MODE": "enfroce"}

    assert ids() == ["rekindle.E004"]


def test_workflows_that_cannot_be_imported_are_told(settings, monkeypatch):
    monkeypatch.delenv("REKINDLE_MODULES", raising=False)
    settings.REKINDLE = {"MODULES": ("no.such.module",)}

    assert ids() == ["rekindle.E005"]

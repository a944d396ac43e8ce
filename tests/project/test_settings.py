"""The settings make things up only at home; elsewhere they ask."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command

ROOT = Path(__file__).resolve().parents[2]
SECRET = "Tz9" * 20 + "!?,.-_ abcdefgh"


def manage(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    plain = {"DJANGO_SETTINGS_MODULE": "project.settings", "REKINDLE_SECRET_KEY": "", "SECRET_KEY": ""}
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env=os.environ | plain | environment,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("elsewhere", [{"DATABASE_URL": "postgresql://db/orders"}, {"REKINDLE_ENV": "production"}])
def test_elsewhere_a_secret_key_is_asked_for_in_one_sentence(elsewhere):
    done = manage("check", **elsewhere)

    assert done.returncode == 1
    assert done.stderr.startswith("Set REKINDLE_SECRET_KEY")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["REKINDLE_SECRET_KEY", "SECRET_KEY"])
def test_the_deploy_check_is_clean_in_production(name):
    production = {"REKINDLE_ENV": "production", "DATABASE_URL": "postgresql://db/orders", name: SECRET}

    done = manage("check", "--deploy", "--fail-level", "WARNING", **production)

    assert done.returncode == 0, done.stderr


def test_debug_is_off_on_a_real_database_whatever_the_environment_says():
    environment = {"DATABASE_URL": "postgresql://db/orders", "SECRET_KEY": SECRET, "REKINDLE_DEBUG": "1"}

    assert "\nDEBUG = True" not in manage("diffsettings", **environment).stdout


def test_the_secret_of_a_data_directory_is_made_once_and_kept_for_its_owner(tmp_path):
    manage("check", REKINDLE_DATA=str(tmp_path / "data"))
    kept = tmp_path / "data" / "secret-key"
    first = kept.read_text()

    manage("check", REKINDLE_DATA=str(tmp_path / "data"))

    assert kept.read_text() == first
    assert len(first) >= 50
    assert kept.stat().st_mode & 0o777 == 0o600


def test_models_and_migrations_agree(db):
    call_command("makemigrations", check=True, dry_run=True, verbosity=1)


def test_a_command_finds_the_embedded_database_running(tmp_path):
    data = {"REKINDLE_DATA": str(tmp_path / "data")}

    done = manage(
        "shell", "-v0", "-c", "from django.db import connection as c; c.ensure_connection(); print(c.vendor)", **data
    )

    assert done.stdout == "postgresql\n", done.stderr


@pytest.mark.parametrize(("environment", "offered"), [("", True), ("production", False)])
def test_in_production_nobody_can_be_killed_from_a_page_whatever_the_environment_says(environment, offered):
    told = {"REKINDLE_UP": "1:1", "REKINDLE_ENV": environment, "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    told |= {"REKINDLE_SECRET_KEY": "x" * 50, "DJANGO_SETTINGS_MODULE": "project.settings"}
    code = "import django; django.setup(); from recovery import killing; print(killing.is_offered())"

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=os.environ | told, capture_output=True, text=True)

    assert done.stdout == f"{offered}\n", done.stderr

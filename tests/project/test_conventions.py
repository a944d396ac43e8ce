"""What every Django developer may take for granted here."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core import checks

from workflows import checks as _  # noqa: F401  (registers them)

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("workflows", "recovery", "project")  # each may import those before it
FILES = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
NOWHERE = {
    "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    "REKINDLE_SECRET_KEY": "Tz9" * 20 + "!?,.-_ abcdefgh",
    "DJANGO_SETTINGS_MODULE": "project.settings",
}


def imported(path: Path) -> set[str]:
    """The first word of everything a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").partition(".")[0])
    return found


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_from_project_to_recovery_to_workflows_and_never_back(path):
    room = path.relative_to(ROOT).parts[0]
    above = set(ROOMS[ROOMS.index(room) + 1 :]) | {"tests"}

    assert not imported(path) & above


def test_defining_a_workflow_imports_no_model():
    done = python(
        "import sys; from workflows import workflow, Backoff, pend;"
        "print(sorted(name for name in sys.modules if name.startswith(('workflows.models', 'recovery'))))",
        DJANGO_SETTINGS_MODULE="",
    )

    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_starting_up_asks_the_database_nothing():
    """django.setup() and the checks run where no database can be reached."""
    code = "import django; django.setup(); from django.core.management import call_command; call_command('check')"

    done = python(code, **NOWHERE)

    assert (done.returncode, done.stderr) == (0, "")
    assert "no issues" in done.stdout


def test_asking_the_database_there_would_have_been_noticed():
    """The test above proves something only if that database is out of reach."""
    code = "import django; django.setup(); from django.db import connection; connection.ensure_connection()"

    assert "OperationalError" in python(code, **NOWHERE).stderr


@pytest.mark.parametrize("app", ["workflows", "recovery"])
def test_each_app_is_typed_and_has_one_migration_until_the_first_release(app):
    assert (ROOT / app / "py.typed").exists()
    assert [path.name for path in (ROOT / app / "migrations").glob("0*.py")] == ["0001_initial.py"]


def test_every_system_check_has_an_id_of_its_own_and_says_what_to_do():
    made = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("Warning", "Error", "Critical", "Info")
                and path.name == "checks.py"
            ):
                made.append({word.arg: word.value for word in node.keywords})

    assert len(made) >= 8
    for words in made:
        assert "hint" in words
        assert re.fullmatch(r"rekindle(_recovery)?\.[WECI]\d{3}", words["id"].value)


def test_unknown_keys_of_the_setting_are_a_warning_and_no_more(settings):
    settings.REKINDLE = {**settings.REKINDLE, "HARTBEAT": 3}

    found = [message for message in checks.run_checks(tags=["rekindle"]) if message.id == "rekindle.W001"]

    assert [(message.level, "HARTBEAT" in message.msg) for message in found] == [(checks.WARNING, True)]


def test_no_file_is_longer_than_one_reads_at_a_sitting():
    long = [path for path in FILES if path.parts[-2] != "migrations" and path.read_text().count("\n") > 400]

    assert not long


def test_the_story_at_the_engines_door_names_files_that_are_there():
    story = ast.get_docstring(ast.parse((ROOT / "workflows/__init__.py").read_text())) or ""
    listed = re.findall(r"^    ((?:\w+, )*\w+)  +\w", story, re.MULTILINE)
    told = {*re.findall(r"`(\w+)`", story), *", ".join(listed).split(", ")} - {"wake_at"}

    engine = ROOT / "workflows"
    assert len(told) > 30
    assert not [name for name in told if not (engine / f"{name}.py").exists() and not (engine / name).is_dir()]

"""`up` brings everything up with one command and leaves nothing behind, whichever way it ends."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from project import postgres
from tests.project.waiting import eventually, kill_everything, processes_of

ROOT = Path(__file__).resolve().parents[2]


class Up:
    """A running `manage.py up` on a data directory of its own, and what it has said so far."""

    def __init__(self, directory: Path, *options: str, **environment: str) -> None:
        self.said = directory.with_suffix(f".{len(list(directory.parent.iterdir()))}.txt")
        settings = {"REKINDLE_DATA": str(directory), "DJANGO_SETTINGS_MODULE": "project.settings"}
        with self.said.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "up", *(options or ("--port", "0"))],
                cwd=ROOT,
                env=os.environ | settings | environment,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def text(self) -> str:
        return self.said.read_text()

    def address(self) -> str:
        def look() -> re.Match[str] | None:
            assert self.process.poll() is None, self.text()
            return re.search(r"Rekindle is at (\S+)", self.text())

        return eventually(look)[1]

    def child(self, name: str) -> int:
        """The process that leads a child's group, told by its command."""
        mine = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        for pid in Path(mine).read_text().split():
            if name.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                return int(pid)
        return 0


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "data"
    kill_everything(tmp_path / "data")


@pytest.fixture
def up(directory: Path) -> Up:
    return Up(directory)


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as answer:
        return answer.code


def test_it_comes_up_and_answers(up, directory):
    address = up.address()

    assert status(address + "admin/login/") == 200
    assert status(address + "static/admin/css/base.css") == 200
    for role in ("viewer", "operator", "admin"):
        kept = directory / f"password-{role}"
        assert f"{role:8} {kept.read_text()}" in up.text()
        assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_and_no_process_is_left(up, directory, sign):
    up.address()

    up.process.send_signal(sign)

    assert up.process.wait() == 0, up.text()
    assert processes_of(directory) == []
    assert up.text().endswith("Stopped.\n")


def test_a_signal_to_the_whole_group_stops_it_as_well(up, directory):
    up.address()

    os.killpg(up.process.pid, signal.SIGINT)

    assert up.process.wait() == 0, up.text()
    assert processes_of(directory) == []


def test_a_signal_while_it_is_still_coming_up_leaves_nothing(up, directory):
    eventually(lambda: (directory / "users.lock").exists())

    up.process.send_signal(signal.SIGTERM)

    assert up.process.wait() == 0, up.text()
    assert processes_of(directory) == []


def test_the_next_one_goes_on_where_the_first_was_killed(up, directory):
    up.address()

    up.process.kill()
    up.process.wait()
    eventually(lambda: not processes_of(directory))
    second = Up(directory)

    assert status(second.address() + "admin/login/") == 200
    assert re.findall(r"admin +\S+", second.text()) == re.findall(r"admin +\S+", up.text())


def test_the_next_one_comes_up_although_everything_was_killed_just_now(up, directory):
    up.address()

    kill_everything(directory)
    up.process.wait()

    assert status(Up(directory).address() + "admin/login/") == 200


def test_a_child_that_dies_is_started_again_and_it_says_so(up):
    address = up.address()
    killed = up.child("gunicorn")

    os.kill(killed, signal.SIGKILL)
    eventually(lambda: "The web stopped (signal 9); starting it again" in up.text())

    assert status(address + "admin/login/") == 200
    assert up.child("gunicorn") != killed


def test_a_database_that_dies_comes_back_under_it(up, directory):
    address = up.address()

    postgres.stop(directory)
    eventually(lambda: "The keeper of the database is gone" in up.text())

    assert eventually(lambda: status(address + "admin/login/") == 200)


def test_a_taken_port_is_named_and_the_next_free_one_used(directory):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        up = Up(directory, "--port", str(port))

        address = up.address()

    assert f"Port {port} is taken; using " in up.text()
    assert status(address + "admin/login/") == 200


def test_only_one_can_be_up_in_a_directory(up, directory):
    up.address()

    second = Up(directory)

    assert second.process.wait() == 1
    assert "already up" in second.text()


def test_without_a_secret_key_it_refuses_a_database_of_somebody_else(directory):
    up = Up(directory, DATABASE_URL="postgresql://nobody@127.0.0.1:1/none", REKINDLE_SECRET_KEY="", SECRET_KEY="")

    assert up.process.wait() == 1
    assert up.text().startswith("Set REKINDLE_SECRET_KEY")


def test_a_database_that_is_not_there_is_one_sentence(directory):
    up = Up(directory, DATABASE_URL="postgresql://nobody@127.0.0.1:1/none", REKINDLE_SECRET_KEY="x" * 50)

    assert up.process.wait() == 1
    assert "Traceback" not in up.text()


def test_on_a_database_of_your_own_it_makes_nobody_and_says_how(directory, tmp_path):
    address = postgres.ensure(tmp_path / "yours", fsync=False)
    up = Up(directory, "--port", "0", DATABASE_URL=address, REKINDLE_SECRET_KEY="x" * 50)

    assert status(up.address() + "admin/login/") == 200
    assert "manage.py createsuperuser" in up.text()
    assert "viewer" not in up.text()

    up.process.terminate()
    assert up.process.wait() == 0
    postgres.leave(tmp_path / "yours")

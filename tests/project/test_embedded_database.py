"""The embedded PostgreSQL lives exactly as long as somebody uses it, whoever is killed in between."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from project import postgres
from project.postgres import Home, NoPostgres, binaries, cluster
from tests.project.waiting import eventually, kill_everything, processes_of

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import sys
from project import postgres
postgres.ensure(sys.argv[1])
print("there", flush=True)
sys.stdin.read()
"""

ensure = partial(postgres.ensure, fsync=False)  # no power fails here, only processes
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "data"
    postgres.leave(tmp_path / "data")
    postgres.stop(tmp_path / "data")


def ask(directory: Path, question: str) -> object:
    with psycopg.connect(postgres.url(directory), autocommit=True) as connection:
        cursor = connection.execute(question)
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def remember(directory: Path) -> None:
    ask(directory, "CREATE TABLE kept AS SELECT 42 AS number")


def remembers(directory: Path) -> bool:
    return ask(directory, "SELECT number FROM kept") == 42


def user_of(directory: Path) -> subprocess.Popen[str]:
    """Another process that uses the database until it is told to end, or killed."""
    user = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(directory)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert user.stdout
    assert user.stdout.readline() == "there\n"
    return user


def test_it_starts_with_fsync_and_is_reached_only_through_its_socket(directory):
    postgres.ensure(directory)

    assert ask(directory, "SHOW fsync") == "on"
    assert ask(directory, "SHOW listen_addresses") == ""
    assert Home.at(directory).socket.parent.stat().st_mode & 0o077 == 0


def test_many_who_start_it_at_once_get_the_same_server(directory):
    together = [
        subprocess.Popen([sys.executable, "-c", HOLD, directory], cwd=ROOT, stdin=subprocess.PIPE) for _ in range(6)
    ]
    ensure(directory)

    keepers = [pid for pid in processes_of(directory) if b"keeper" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    assert len(keepers) == 1
    assert [user.communicate() and user.returncode for user in together] == [0] * 6


def test_what_was_committed_is_there_after_everything_was_killed(directory):
    ensure(directory)
    remember(directory)

    kill_everything(directory)
    ensure(directory)

    assert remembers(directory)


def test_a_stale_pid_file_does_not_fool_it_even_if_its_number_is_somebody_elses_now(directory):
    ensure(directory)
    remember(directory)
    kill_everything(directory)
    for note in (Home.at(directory).pidfile, Path(f"{Home.at(directory).socket}.lock")):
        note.write_text("\n".join([str(os.getpid()), *note.read_text().splitlines()[1:]]) + "\n")

    ensure(directory)

    assert remembers(directory)
    assert cluster.postmaster(Home.at(directory)) != os.getpid()


def test_a_killed_server_comes_back_by_itself(directory):
    ensure(directory)
    remember(directory)
    killed = cluster.postmaster(Home.at(directory))

    os.kill(killed, signal.SIGKILL)
    eventually(
        lambda: cluster.postmaster(Home.at(directory)) not in (None, killed) and cluster.is_ready(Home.at(directory))
    )

    assert remembers(directory)


def test_a_killed_keeper_takes_its_server_with_it_and_the_next_start_is_a_new_one(directory):
    ensure(directory)
    remember(directory)

    os.kill(int(Home.at(directory).keeper.read_text()), signal.SIGKILL)
    eventually(lambda: not postgres.is_kept(directory))
    ensure(directory)

    assert remembers(directory)


def test_it_stays_while_somebody_uses_it_and_goes_when_the_last_one_is_killed(directory):
    user = user_of(directory)
    ensure(directory)

    postgres.leave(directory)
    assert ask(directory, "SELECT 1") == 1

    user.kill()
    user.communicate()
    eventually(lambda: not processes_of(directory))


def test_it_can_be_stopped_under_everybodys_feet_and_started_again(directory):
    ensure(directory)
    remember(directory)

    postgres.stop(directory)
    assert not processes_of(directory)
    ensure(directory)

    assert remembers(directory)


def test_two_directories_do_not_disturb_each_other(directory, tmp_path):
    other = tmp_path / "other"
    ensure(directory)
    remember(directory)
    ensure(other)
    remember(other)

    postgres.leave(other)

    assert not processes_of(other)
    assert remembers(directory)


def test_what_is_to_be_thrown_away_is_gone_with_its_last_user(tmp_path):
    ensure(tmp_path / "brief", throw_away=True)

    postgres.leave(tmp_path / "brief")

    assert not (tmp_path / "brief").exists()


def test_files_that_were_only_half_made_are_made_again(directory):
    (directory / "postgres.new" / "base").mkdir(parents=True)

    ensure(directory)

    assert ask(directory, "SELECT 1") == 1


def test_a_directory_too_deep_for_a_socket_address_works_as_well(tmp_path):
    deep = tmp_path / ("d" * 100) / "data"

    ensure(deep)

    assert ask(deep, "SELECT 1") == 1
    postgres.leave(deep)


def test_files_are_opened_by_the_version_that_made_them(directory, monkeypatch):
    versions = sorted(binaries._in_the_wheel(), key=binaries._major)
    if len(versions) < 2:
        pytest.skip("the wheel brings only one PostgreSQL")
    monkeypatch.setenv("REKINDLE_POSTGRES", str(versions[0]))
    ensure(directory)
    postgres.stop(directory)

    monkeypatch.delenv("REKINDLE_POSTGRES")
    ensure(directory)

    assert int(ask(directory, "SHOW server_version_num")) // 10000 == binaries._major(versions[0])


def test_where_there_is_no_postgres_it_says_what_to_set(directory, monkeypatch, tmp_path):
    monkeypatch.setenv("REKINDLE_POSTGRES", str(tmp_path))

    with pytest.raises(NoPostgres, match="DATABASE_URL=postgresql://"):
        ensure(directory)


@as_root
def test_an_ordinary_user_can_start_it(tmp_path_factory):
    somebody = pwd.getpwnam("nobody")
    python = next((p for p in (sys.executable, "/usr/bin/python3") if _can_run(p, somebody)), None)
    if python is None:
        pytest.skip("an ordinary user can reach no Python here")
    directory = Path("/tmp") / f"rekindle-nobody-{os.getpid()}"
    script = "import os, sys; from project import postgres; postgres.ensure(sys.argv[1]); print(os.geteuid())"
    try:
        done = subprocess.run(
            [python, "-c", script, directory],
            cwd=ROOT,
            user=somebody.pw_uid,
            group=somebody.pw_gid,
            extra_groups=[],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
        )

        assert done.stdout == f"{somebody.pw_uid}\n", done.stderr
        assert (directory / "postgres").stat().st_uid == somebody.pw_uid
        eventually(lambda: not processes_of(directory))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _can_run(python: str, somebody: pwd.struct_passwd) -> bool:
    try:
        check = subprocess.run([python, "-c", ""], user=somebody.pw_uid, group=somebody.pw_gid, cwd=ROOT)
    except OSError:
        return False
    return check.returncode == 0


@as_root
def test_root_can_start_it_where_user_namespaces_are_forbidden(directory, monkeypatch, tmp_path):
    forbidden = tmp_path / "bin" / "unshare"
    forbidden.parent.mkdir()
    forbidden.write_text("#!/bin/sh\nexit 1\n")
    forbidden.chmod(0o755)
    monkeypatch.setenv("PATH", f"{forbidden.parent}{os.pathsep}{os.environ['PATH']}")

    ensure(directory)

    assert ask(directory, "SELECT 1") == 1
    assert (directory / "postgres").stat().st_uid != 0
    kill_everything(directory)
    ensure(directory)
    assert ask(directory, "SELECT 1") == 1

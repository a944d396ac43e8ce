"""The server itself: make its files, clear up what a crash left, start it, know when it is ready, stop it."""

import os
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from project.kin import dying_with_its_parent
from project.postgres import account, binaries
from project.postgres.home import DATABASE, PORT, Home
from project.postgres.trouble import NoPostgres

TLS_REQUEST = struct.pack("!ii", 8, 80877103)
LOG_LIMIT = 10_000_000
SHUTDOWN = [(signal.SIGINT, 20), (signal.SIGQUIT, 5), (signal.SIGKILL, 5)]  # fast, immediate, none at all


def make(home: Home, *, fsync: bool) -> None:
    """Made aside and moved into place: a crash in the middle leaves nothing that looks finished."""
    if home.cluster.exists():
        return
    folder, aside = binaries.find(), home.path / "postgres.new"
    become = [*account.prefix(), *dying_with_its_parent("KILL")]
    shutil.rmtree(aside, ignore_errors=True)
    initdb = [*become, str(folder / "initdb"), "-D", str(aside), "-U", DATABASE, "--encoding=UTF8"]
    initdb += ["--locale=C.UTF-8", "--auth-local=trust", "--auth-host=reject"]
    _run([*initdb, *([] if fsync else ["--no-sync"])])
    single = [*become, str(folder / "postgres"), "--single", "-D", str(aside), "postgres"]
    _run(single, f"CREATE DATABASE {DATABASE}\n")
    aside.rename(home.cluster)


def start(home: Home, *, fsync: bool) -> subprocess.Popen[bytes]:
    """In the log of the directory, and gone with the keeper even if that is killed."""
    folder = binaries.find(int((home.cluster / "PG_VERSION").read_text()))
    home.make_socket_directory()
    if home.log.exists() and home.log.stat().st_size > LOG_LIMIT:
        home.log.replace(home.log.with_suffix(".log.1"))
    command = [*account.prefix(), *dying_with_its_parent("INT"), str(folder / "postgres")]
    for name, value in _settings(home, fsync).items():
        command += ["-c", f"{name}={value}"]
    with home.log.open("ab") as log:
        return subprocess.Popen(
            [*command, "-D", str(home.cluster)], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/"
        )


def _settings(home: Home, fsync: bool) -> dict[str, str | int]:
    settings: dict[str, str | int] = {
        "listen_addresses": "",
        "unix_socket_directories": str(home.socket.parent),
        "unix_socket_permissions": "0700",
        "port": PORT,
        "cluster_name": _title(home),
        "max_connections": 200,
        "timezone": "UTC",
        "log_timezone": "UTC",
        "jit": "off",
    }
    if not fsync:  # a commit still leaves the server before it is answered: it survives all but a power cut
        settings |= {"fsync": "off", "full_page_writes": "off"}
    return settings


def is_ready(home: Home) -> bool:
    """First the server, then the file: a stale file is replaced before anybody answers on the socket.

    To connect is not enough: the socket of a server that is just being killed still accepts. So it is asked
    the shortest question of the protocol, whether it speaks TLS; any answer comes from a living server.
    """
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(home.socket))
            probe.sendall(TLS_REQUEST)
            answered = probe.recv(1)
        except OSError:
            return False
    return bool(answered) and _pidfile(home)[7:8] == ["ready"]


def postmaster(home: Home) -> int | None:
    """The number of the server's first process, as it wrote it down."""
    lines = _pidfile(home)
    return int(lines[0]) if lines and lines[0].isdigit() else None


def wait_until_ready(home: Home, server: subprocess.Popen[bytes]) -> None:
    """However long it replays its log; but a server that gives up is reported with its last words."""
    while not is_ready(home):
        if server.poll() is not None:
            words = home.log.read_text(errors="replace").strip().rsplit("\n", 1)[-1]
            raise NoPostgres(f"PostgreSQL does not start ({words}): see {home.log}.")
        time.sleep(0.02)


def stop(server: subprocess.Popen[bytes]) -> None:
    for sign, patience in SHUTDOWN:
        server.send_signal(sign)
        try:
            server.wait(patience)
            return
        except subprocess.TimeoutExpired:
            continue


def clear_up(home: Home) -> None:
    """After a crash: end what still runs on these files, then remove the notes of the dead.

    PostgreSQL believes its pid file when any process has that number now. It may only be removed when no
    process of the old server is left, because it is also what guards the files against a second server.
    """
    if not Path("/proc/self/cmdline").exists():
        return
    for sign, patience in SHUTDOWN:
        for pid in _processes(home):
            _signal(pid, sign)
        until = time.monotonic() + patience
        while list(_processes(home)) and time.monotonic() < until:
            time.sleep(0.02)
    if left := list(_processes(home)):
        raise NoPostgres(f"Processes {left} still use {home.cluster} and cannot be ended.")
    for note in (home.pidfile, home.socket, home.socket.with_name(home.socket.name + ".lock")):
        note.unlink(missing_ok=True)


def _processes(home: Home) -> Iterator[int]:
    """Every living process of a server on these files, told by its command line: anybody may read that."""
    title, files = f"postgres: {_title(home)}: ", str(home.cluster)
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            words = Path(entry.path, "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if words[0].startswith(title) or (os.path.basename(words[0]) == "postgres" and files in words):
            yield int(entry.name)


def _title(home: Home) -> str:
    return f"rekindle-{home.mark}"


def _pidfile(home: Home) -> list[str]:
    try:
        return [line.strip() for line in home.pidfile.read_text().splitlines()]
    except OSError:
        return []


def _signal(pid: int, sign: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, sign)


def _run(command: list[str], said: str = "") -> None:
    done = subprocess.run(command, input=said, capture_output=True, text=True, cwd="/")
    if done.returncode:
        raise NoPostgres(f"{Path(command[-1]).name}: {' '.join((done.stderr or done.stdout).split())}")

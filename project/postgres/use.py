"""What the rest of the project calls. Any number of processes may call `ensure` at once; one of them starts it."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from project.postgres import cluster, locks
from project.postgres.home import Home
from project.postgres.trouble import NoPostgres

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120  # after a crash the server first replays its log

_holding: dict[Home, int] = {}
_started: dict[subprocess.Popen[str], Home] = {}  # keepers of ours: they may not have their lock yet


def url(directory: str | os.PathLike[str]) -> str:
    """The address, whether or not anything runs there."""
    return Home.at(directory).url


def ensure(directory: str | os.PathLike[str], *, fsync: bool = True, throw_away: bool = False) -> str:
    """See that the database runs, and that it goes on running while this process lives. Returns its address."""
    home = Home.at(directory)
    try:
        home.make()
        if home not in _holding:
            _holding[home] = locks.take(home.users, locks.SHARED)  # waits while a keeper is just about to leave
    except PermissionError as refusal:
        raise NoPostgres(f"{home.path} is not yours: set REKINDLE_DATA to a directory of your own.") from refusal
    with locks.held(home.starting):
        if not cluster.is_ready(home):
            _start(home, ["--no-fsync"] * (not fsync) + ["--throw-away"] * throw_away)
    return home.url


def _start(home: Home, options: list[str]) -> None:
    until = time.monotonic() + PATIENCE
    keeper = None
    while not cluster.is_ready(home):
        if keeper is not None and keeper.poll():
            raise NoPostgres(_last_words(keeper).strip())
        if locks.could_be_taken(home.keeper, locks.ALONE) and (keeper is None or keeper.poll() is not None):
            keeper = _keeper(home, options)
        if time.monotonic() > until:
            raise NoPostgres(f"The embedded PostgreSQL did not come up in {PATIENCE} s: see {home.log}.")
        time.sleep(0.02)


def _keeper(home: Home, options: list[str]) -> subprocess.Popen[str]:
    """In a session of its own, so that Ctrl-C in the terminal does not reach the database."""
    keeper = subprocess.Popen(
        [sys.executable, "-m", "project.postgres.keeper", str(home.path), *options],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    _started[keeper] = home
    return keeper


def leave(directory: str | os.PathLike[str]) -> None:
    """Give up the use of it, and wait until it is down unless somebody else still uses it."""
    home = Home.at(directory)
    if home in _holding:
        os.close(_holding.pop(home))
    while not _gone(home):
        if not locks.could_be_taken(home.users, locks.ALONE) and locks.could_be_taken(home.users, locks.SHARED):
            return  # somebody shares it: it stays
        time.sleep(0.05)


def stop(directory: str | os.PathLike[str]) -> None:
    """Stop it under everybody's feet. The next `ensure` starts it again."""
    home = Home.at(directory)
    while not _gone(home):
        with suppress(FileNotFoundError):
            home.please_stop.touch()  # a file, not a signal: a number on disk may be somebody else's by now
        time.sleep(0.05)
    home.please_stop.unlink(missing_ok=True)


def _last_words(keeper: subprocess.Popen[str]) -> str:
    del _started[keeper]
    return keeper.communicate()[1]


def is_kept(directory: str | os.PathLike[str]) -> bool:
    """Whether somebody sees to it that the database runs."""
    return not _gone(Home.at(directory))


def _gone(home: Home) -> bool:
    """No keeper: and the server went before it. Asking also collects the keepers this process started."""
    for keeper in list(_started):
        if keeper.poll() is not None:
            _last_words(keeper)
    return home not in _started.values() and locks.could_be_taken(home.keeper, locks.ALONE)

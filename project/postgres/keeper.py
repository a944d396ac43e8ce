"""The process that keeps the server: it starts it, starts it again if it dies, and stops it when nobody uses it.

Run as `python -m project.postgres.keeper DIRECTORY [--no-fsync] [--throw-away]`. A directory to throw away is
removed together with its last user, so that tests leave nothing behind, not even when they are killed.
"""

import argparse
import os
import shutil
import signal
import sys
import time
from contextlib import suppress

from project.postgres import cluster, locks
from project.postgres.home import Home
from project.postgres.trouble import NoPostgres

LOOK_EVERY = 0.2
LONGEST_PAUSE = 5.0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--no-fsync", dest="fsync", action="store_false")
    parser.add_argument("--throw-away", action="store_true")
    wish = parser.parse_args()
    home = Home.at(wish.directory)
    mine = locks.try_to_take(home.keeper, locks.ALONE)
    if mine is None:
        return  # somebody keeps it already
    os.ftruncate(mine, 0)
    os.write(mine, str(os.getpid()).encode())
    try:
        keep(home, fsync=wish.fsync, throw_away=wish.throw_away)
    except NoPostgres as trouble:
        sys.exit(str(trouble))


def keep(home: Home, *, fsync: bool, throw_away: bool) -> None:
    """Returns when it is told to stop, or when it could lock out every user: then there is none."""
    home.please_stop.unlink(missing_ok=True)  # meant for somebody before us
    signal.signal(signal.SIGTERM, lambda number, frame: home.please_stop.touch())
    cluster.make(home, fsync=fsync)
    cluster.clear_up(home)
    server = cluster.start(home, fsync=fsync)
    cluster.wait_until_ready(home, server)
    started, pause = time.monotonic(), LOOK_EVERY
    alone = None
    while not home.please_stop.exists() and (alone := locks.try_to_take(home.users, locks.ALONE)) is None:
        time.sleep(LOOK_EVERY)
        if server.poll() is None:
            continue
        lived = time.monotonic() - started
        pause = LOOK_EVERY if lived > LONGEST_PAUSE else min(pause * 2, LONGEST_PAUSE)
        time.sleep(pause)
        cluster.clear_up(home)
        server, started = cluster.start(home, fsync=fsync), time.monotonic()
    cluster.stop(server)
    with suppress(OSError):
        home.socket.parent.rmdir()
    if alone is not None and throw_away:
        shutil.rmtree(home.path, ignore_errors=True)


if __name__ == "__main__":
    main()

"""The workers that chaos starts, and their end, whatever happens to chaos itself."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from workflows.conf import settings
from workflows.models import Worker

from . import ledger

PROCESSES, SLOTS = 2, 8  # of each supervisor
# A faster world, so that an hour of trouble fits into a minute.
PACE = {
    "REKINDLE_HEARTBEAT": "0.5",
    "REKINDLE_STALE_AFTER": "3",
    "REKINDLE_SWEEP_EVERY": "0.1",
    "REKINDLE_RECOVERY_DELAY": "0.002",
    "REKINDLE_GRACE": "1",
}
# Holds no connection and no state: it reads process groups and kills them when its input ends, that is, when chaos ends.
GUARD = """
import os, signal, sys
groups = [int(line) for line in sys.stdin]
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
"""


class Crew:
    """`manage.py work`, several times, each in a process group of its own."""

    def __init__(self, size: int, book: Path) -> None:
        self.size = size
        self._not_before = 0.0
        self.groups: list[subprocess.Popen[bytes]] = []  # never reaped before the end: their ids stay ours
        modules = ",".join((*settings().modules, f"{__package__}.flows"))
        self._world = os.environ | PACE | {ledger.WHERE: str(book), "REKINDLE_MODULES": modules}
        self._world["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        self._guard = subprocess.Popen(
            [sys.executable, "-S", "-c", GUARD], stdin=subprocess.PIPE, start_new_session=True
        )

    def fill(self) -> None:
        """Start as many supervisors as are missing, one at a time and not faster than they can fail."""
        if time.monotonic() >= self._not_before and len(self.living()) < self.size:
            self._not_before = time.monotonic() + 0.5
            command = [sys.executable, "-m", "django", "rekindle", "work", "--processes", str(PROCESSES)]
            command += ["--concurrency", str(SLOTS)]
            quiet = subprocess.DEVNULL
            one = subprocess.Popen(
                command, env=self._world, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
            )
            self.groups.append(one)
            assert self._guard.stdin
            self._guard.stdin.write(f"{one.pid}\n".encode())
            self._guard.stdin.flush()

    def living(self) -> list[subprocess.Popen[bytes]]:
        return [one for one in self.groups if _lives(one.pid)]

    def children(self) -> list[Worker]:
        """Registered worker processes of ours that hold work in company. The lone ones are spared: see `blows`."""
        ours = {one.pid for one in self.groups}
        rows = Worker.objects.using(settings().database).filter(ended_at=None, alone=False).order_by("id")
        return [row for row in rows if _group(row.pid) in ours]

    def end(self) -> None:
        """Ask politely, then let the guard do it. Nobody is reaped before: until then no other process can have their ids."""
        for one in self.living():
            os.kill(one.pid, signal.SIGCONT)
            os.kill(one.pid, signal.SIGTERM)
        patience = time.monotonic() + 10
        while self.living() and time.monotonic() < patience:
            time.sleep(0.05)
        assert self._guard.stdin
        self._guard.stdin.close()
        for one in (self._guard, *self.groups):
            one.wait(10)


def _lives(pid: int) -> bool:
    """Looks without reaping."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None

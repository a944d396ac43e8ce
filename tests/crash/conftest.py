"""Real worker processes on the test's database, a ledger outside of it, and a way to wait."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workflows.models import Worker

ROOT = Path(__file__).resolve().parents[2]
FAST = {
    "REKINDLE_MODULES": "tests.workflows.flows,tests.crash.flows",
    "REKINDLE_HEARTBEAT": "0.5",
    "REKINDLE_STALE_AFTER": "3",
    "REKINDLE_SWEEP_EVERY": "0.1",
    "REKINDLE_RESTART_GRACE": "3",
    "REKINDLE_GRACE": "2",
}


def until(true: Callable[[], object], what: str, seconds: float = 40) -> None:
    """Wait for something to become true; the limit only ends a test that has failed anyway."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"waited {seconds} s in vain until {what}"
        time.sleep(0.02)


@pytest.fixture
def ledger(tmp_path: Path) -> Callable[[], list[str]]:
    path = tmp_path / "ledger"
    path.touch()
    return lambda: path.read_text().split()


class Workers:
    """Starts `manage.py work` and ends what it started."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, processes: int = 1, concurrency: int = 8, **settings: str) -> subprocess.Popen[bytes]:
        before = Worker.objects.count()
        command = [
            sys.executable,
            "manage.py",
            "work",
            "--processes",
            str(processes),
            "--concurrency",
            str(concurrency),
        ]
        process = subprocess.Popen(command, cwd=ROOT, env=self.environment | settings, start_new_session=True)
        self.processes.append(process)
        until(lambda: Worker.objects.count() >= before + processes, "the worker is up")
        return process

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.fixture
def workers(outside: dict[str, str], tmp_path: Path) -> Iterator[Workers]:
    crew = Workers(outside | FAST | {"LEDGER": str(tmp_path / "ledger"), "PYTHONPATH": str(ROOT)})
    yield crew
    crew.end()

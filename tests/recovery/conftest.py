"""Worker processes as in the crash tests, and real qclusters beside them."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.crash.conftest import ROOT, Workers, ledger, workers

__all__ = ["ledger", "workers"]


@pytest.fixture
def qcluster(workers: Workers) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Starts `manage.py qcluster`, and ends what it started."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "manage.py", "qcluster"]
        started.append(subprocess.Popen(command, cwd=ROOT, env=workers.environment, start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

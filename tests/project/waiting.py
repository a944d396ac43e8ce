"""Waiting for other processes, and finding those of a data directory."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from project.postgres import Home

T = TypeVar("T")
PATIENCE = 60


def eventually(look: Callable[[], T]) -> T:
    """The first true answer. How long it took is nobody's business here."""
    until = time.monotonic() + PATIENCE
    while not (answer := look()):
        assert time.monotonic() < until, f"Not within {PATIENCE} s: {look}"
        time.sleep(0.05)
    return answer


def kill_everything(directory: Path) -> None:
    while found := processes_of(directory):
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def processes_of(directory: Path) -> list[int]:
    """Whoever is alive and names this directory: in its command line, its environment or its title."""
    needles = [os.fsencode(Home.at(directory).path), Home.at(directory).mark.encode()]
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if any(needle in text for needle in needles):
                found.append(int(entry.name))
    return found

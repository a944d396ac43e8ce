"""What really ran, told outside the database: one line when a body begins, in the order in which bodies began."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

WHERE = "REKINDLE_CHAOS_LEDGER"  # the environment variable that names the file


class Line(NamedTuple):
    """A body began: which step of which workflow, and under which fence."""

    workflow: str
    path: str
    position: int
    fence: int


def note(idempotency_key: str, fence: int) -> None:
    """One write, so that lines of several processes never mix and a killed one leaves whole lines only."""
    descriptor = os.open(os.environ[WHERE], os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.write(descriptor, f"{idempotency_key} {fence}\n".encode())
    finally:
        os.close(descriptor)


def read(path: Path) -> Iterator[Line]:
    for text in path.read_text().splitlines() if path.exists() else ():
        key, fence = text.rsplit(" ", 1)
        workflow, where = key[:36], key[36:]
        cut = where.rindex(".") + 1
        yield Line(workflow, where[:cut], int(where[cut:]), int(fence))

"""File locks: the kernel gives them back when their holder dies, so none of them can be stale."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SHARED = fcntl.LOCK_SH
ALONE = fcntl.LOCK_EX


def take(path: Path, how: int) -> int:
    """Wait for the lock and return the open file that holds it."""
    opened = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(opened, how)
    return opened


def try_to_take(path: Path, how: int) -> int | None:
    return _try(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), how)


def could_be_taken(path: Path, how: int) -> bool:
    """Only asks: makes no file, and keeps nothing."""
    try:
        opened = _try(os.open(path, os.O_RDWR), how)
    except FileNotFoundError:
        return True
    if opened is None:
        return False
    os.close(opened)
    return True


def _try(opened: int, how: int) -> int | None:
    try:
        fcntl.flock(opened, how | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(opened)
        return None
    return opened


@contextmanager
def held(path: Path) -> Iterator[None]:
    opened = take(path, ALONE)
    try:
        yield
    finally:
        os.close(opened)

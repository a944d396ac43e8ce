"""Whether a process was started by this `up`: the demo asks before it lets anybody kill one.

`up` tells its children who it is: its number, and when it began, because numbers are used again.
"""

import os
from pathlib import Path

TOLD = "REKINDLE_UP"  # in the environment of the children
DEEPEST = 8  # generations between `up` and a worker; there are two


def tell() -> None:
    """Called by `up`, before it starts anybody."""
    if me := _stat(os.getpid()):
        os.environ[TOLD] = f"{os.getpid()}:{me[1]}"


def is_of_this_up(pid: int) -> bool:
    """Walks from parent to parent. Where there is no /proc, nobody is."""
    up, _, born = os.environ.get(TOLD, "").partition(":")
    for _ in range(DEEPEST):
        stat = _stat(pid)
        if stat is None:
            return False
        if str(pid) == up:
            return str(stat[1]) == born
        pid = stat[0]
    return False


def _stat(pid: int) -> tuple[int, int] | None:
    """Its parent, and when it began; None if it is gone."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(words[1]), int(words[19])

"""What the person at the terminal reads: a line for each step, then the lines of the children behind their names."""

import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

COLOURS = {"web": 36, "scheduler": 35, "worker": 32, "demo": 34, "up": 33}
WIDTH = max(map(len, COLOURS))
BACK = "\r\x1b[K"  # to the beginning of the line, and wipe it


_unfinished = False  # on a terminal the step under way is a line without an end


def speak_plainly() -> None:
    """A terminal that knows no tick mark shows a question mark instead."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def say(text: str = "", end: str = "\n") -> None:
    """A reader who has gone away (`make up | head`, a closed terminal) is no reason to fall over."""
    global _unfinished
    with suppress(OSError):
        print(BACK + text if _unfinished else text, end=end, flush=True)
    _unfinished = end == ""


@contextmanager
def step(doing: str) -> Iterator[None]:
    """Names the step while it lasts, then ticks it off with its seconds."""
    began = time.monotonic()
    if sys.stdout.isatty():
        say(f"  {doing} …", end="")
    try:
        yield
    except BaseException:
        say(f"✗ {doing}")
        raise
    say(f"✓ {doing}  {time.monotonic() - began:.1f} s")


def relay(name: str, line: str) -> None:
    label = f"{name:{WIDTH}} |"
    if sys.stdout.isatty():
        label = f"\x1b[{COLOURS[name]}m{label}\x1b[0m"
    say(f"{label} {line}")

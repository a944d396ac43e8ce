"""The ledger: each step body says, in a file only ever appended to, that it began and that it ended.

It is outside every database, so no engine can tidy it up. Standard library only.
"""

import os
import time

_file: int | None = None


def note(what: str, workflow: str, step: str) -> None:
    """Append one line: a single write to a file opened with O_APPEND, so lines never mix."""
    global _file
    if _file is None:
        _file = os.open(os.environ["BENCH_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(_file, f"{time.time():.6f} {os.getpid()} {what} {workflow} {step}\n".encode())


def short(workflow: str, step: str, seconds: float = 0.0) -> str:
    """A step that begins, perhaps takes a while, and ends."""
    note("begin", workflow, step)
    if seconds:
        time.sleep(seconds)
    note("end", workflow, step)
    return step


def long(workflow: str, step: str) -> str:
    """A step that is still running when the worker is killed; its length only bounds a forgotten process."""
    note("begin", workflow, step)
    time.sleep(300)
    note("end", workflow, step)
    return step

"""Workflows whose bodies do not come back, or try to take their process with them."""

import logging
import re
import sys
import time

from django.db import connection

from workflows import Run, workflow

from .flows import note

FOREVER = 3600


@workflow("hangs")
def hangs(run: Run, tag: str, times: int = 1) -> str:
    """Its step hangs the first so many times."""

    def body() -> str:
        note(f"{tag}:begun")
        if run.attempt <= times:
            time.sleep(FOREVER)
        return note(f"{tag}:ended")

    return str(run.step(body, name="sticks"))


@workflow("times_out")
def times_out(run: Run, tag: str, hangs: int = 1) -> str:
    def body() -> str:
        note(f"{tag}:begun")
        if run.attempt <= hangs:
            time.sleep(FOREVER)
        return note(f"{tag}:ended")

    return str(run.step(body, name="sticks", timeout=0.2, retries=hangs + 1, backoff=0.05))


@workflow("holds_the_gil")
def holds_the_gil(run: Run, tag: str) -> None:
    def body() -> None:
        note(f"{tag}:begun")
        re.match(r"(a+)+$", "a" * 60 + "b")  # years, in C, without letting go of the interpreter

    run.step(body, name="regex")


@workflow("leaves")
def leaves(run: Run, how: str, outside: bool = False) -> None:
    def body() -> None:
        if how == "sys.exit":
            sys.exit(3)
        raise {"SystemExit": SystemExit, "KeyboardInterrupt": KeyboardInterrupt, "MemoryError": MemoryError}[how]

    if outside:
        body()
    run.step(body, name="leaves")


@workflow("allocates")
def allocates(run: Run) -> None:
    def body() -> None:
        kept = []
        while True:
            kept.append(bytearray(64 << 20))

    run.step(body, name="allocates")


@workflow("takes_stock")
def takes_stock(run: Run, tag: str) -> int:
    """Under the lock of a row of the host's own, in the same transaction as its record."""

    def body() -> int:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE stock SET pieces = pieces - 1 RETURNING pieces")
            left = cursor.fetchone()[0]
        note(f"{tag}:{run.attempt}:locked")
        time.sleep(1)
        return int(left)

    return int(run.step(body, name="take", atomic=True))


@workflow("idles")
def idles(run: Run) -> None:
    """A transaction that lies open while its body is busy elsewhere."""

    def body() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        note("idles")
        time.sleep(2)

    run.step(body, name="idles", atomic=True, retries=2, backoff=0.05)


@workflow("writes_log_lines")
def writes_log_lines(run: Run) -> None:
    run.step(lambda: logging.getLogger("shop").warning("hello"), name="greet")

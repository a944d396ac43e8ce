"""Workflows that are made to die in a certain place."""

import os
import time
from pathlib import Path
from typing import Any

from django.db import connection

from tests.workflows.flows import note
from workflows import Run, workflow


def first(word: str) -> bool:
    """Note it, and say whether that was the first time. By the ledger: a start that died with its worker may be untold."""
    before = Path(os.environ["LEDGER"]).read_text().split()
    return note(word) not in before


@workflow("branches")
def branches(run: Run, slow: list[str], after: float = 0) -> list[Any]:
    """Three branches, those named take their time, and a step after the join."""

    def branch(name: str) -> Any:
        def body() -> str:
            time.sleep(60 if first(f"{name}:begun") and name in slow else 0)
            return note(f"{name}:ended")

        return lambda r: r.step(body, name=name)

    def last() -> str:
        time.sleep(after if first("after:begun") else 0)
        return note("after:ended")

    done = run.parallel("route_1", {name: branch(name) for name in ("a", "b", "c")})
    return [*done, run.step(last, name="after")]


@workflow("brief")
def brief(run: Run, tag: str = "t", fails: bool = False) -> str:
    """A step, a short sleep, a step, an end."""
    run.step(note, f"{tag}:before", name="before")
    run.sleep(0.05)
    run.step(note, f"{tag}:after", name="after")
    if fails:
        raise ValueError("as it was told to")
    return tag


@workflow("forks")
def forks(run: Run) -> str:
    """Its body leaves a child behind that outlives the worker."""

    def body() -> str:
        if not first("forks"):
            return note("done")
        child = os.fork()
        if child == 0:
            time.sleep(600)
            os._exit(0)
        note(f"child:{child}")
        time.sleep(60)
        return "never"

    return str(run.step(body, name="body"))


@workflow("books")
def books(run: Run) -> None:
    """Takes its time inside the transaction of an atomic step, the first time."""

    def book() -> None:
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO crash_effects (workflow_id) VALUES (%s)", [run.id])
        time.sleep(2.5 if first("booked") else 0)

    run.step(book, name="book", atomic=True)


@workflow("herd")
def herd(run: Run, tag: str = "") -> None:
    run.step(int, name="s")


@workflow("crosses")
def crosses(run: Run, rows: list[int]) -> None:
    """Two of them take the same two rows in opposite order, each when the other has its first."""

    def cross() -> None:
        with connection.cursor() as cursor:
            for row in rows:
                cursor.execute("UPDATE crash_rows SET times = times + 1 WHERE id = %s", [row])
                note(f"row:{row}")
                while not {"row:1", "row:2"} <= set(Path(os.environ["LEDGER"]).read_text().split()):
                    time.sleep(0.01)

    run.step(cross, name="cross", atomic=True)


@workflow("lazy_end", persistence="lazy")
def lazy_end(run: Run) -> str:
    """All it has to say, it says at its end."""

    def body() -> str:
        note("begun")
        time.sleep(0.5)
        return note("ended")

    return str(run.step(body, name="body"))


@workflow("obliging")
def obliging(run: Run) -> None:
    """A long step that looks whether it should stop, and one after it."""

    def body() -> None:
        note("begun")
        while not run.should_stop:
            time.sleep(0.02)
        note("stopped")

    run.step(body, name="body")
    run.step(note, "further", name="further")


@workflow("one_asks_one_works")
def one_asks_one_works(run: Run) -> None:
    """A branch that waits for a person, beside one that works until that branch went on."""

    def asks(run: Run) -> None:
        run.pend("desk")
        run.step(note, f"rate:{run.variables['rate']}", name="after")

    def works(run: Run) -> None:
        def body() -> None:
            note("begun")
            while not any(line.startswith("rate:") for line in Path(os.environ["LEDGER"]).read_text().split()):
                time.sleep(0.02)

        run.step(body, name="body")

    run.parallel("both", asks=asks, works=works)


def how_often(word: str) -> int:
    return Path(os.environ["LEDGER"]).read_text().split().count(word)


@workflow("strikes")
def strikes(run: Run, company: int) -> None:
    """Kills its process; the first two times once all its company has begun there."""

    def body() -> None:
        note("strikes:begun")
        while how_often("endures:begun") < company * min(how_often("strikes:begun"), 2):
            time.sleep(0.1)
        note("struck")
        os._exit(9)

    run.step(body, name="kills")


@workflow("endures")
def endures(run: Run, tag: str) -> str:
    """One step that outlasts every process in which it is not alone."""

    def body() -> str:
        note("endures:begun")
        note(f"{tag}:begun")
        time.sleep(600 if how_often("struck") < 2 else 0)
        return note(f"{tag}:ended")

    return str(run.step(body, name="lasts"))


@workflow("adds")
def adds(run: Run, steps: int) -> None:
    """One row for each atomic step."""

    def add() -> None:
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO crash_effects (workflow_id) VALUES (%s)", [run.id])
        time.sleep(0.02)

    for _ in range(steps):
        run.step(add, atomic=True)

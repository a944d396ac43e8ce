"""The bakery's first workflow: what an author writes after having installed Rekindle."""

import os
import time
from pathlib import Path

from workflows import Run, workflow


@workflow("bread")
def bread(run: Run, loaf: str) -> str:
    run.step(note, "dough", loaf, name="knead")
    run.step(bake, loaf)
    return run.step(note, "sold", loaf, name="sell")


def bake(loaf: str) -> None:
    """In the oven until somebody opens the door."""
    note("oven", loaf)
    while not Path(os.environ["BAKERY_DOOR"]).exists():
        time.sleep(0.05)


def note(what: str, loaf: str) -> str:
    with open(os.environ["BAKERY_LEDGER"], "a") as ledger:
        ledger.write(f"{what}:{loaf}\n")
    return what

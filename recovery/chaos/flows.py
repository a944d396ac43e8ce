"""The workflows that chaos runs. Only its own workers import this module; production never knows these names."""

import os
import time
from typing import Any

from django.db import connections

from workflows import Run, workflow
from workflows.conf import settings

from . import ledger

MAX_DEATHS = 2  # of the poison, before it is given up


def body(n: int, seconds: float = 0.05) -> int:
    """Every body says in the ledger that it began, and under which fence."""
    run = Run.current()
    ledger.note(run.idempotency_key, run._held.fence)
    time.sleep(seconds)
    return n


def steps(run: Run, n: int, count: int, seconds: float = 0.05) -> int:
    return sum(run.step(body, n + k, seconds, name=f"s{k}") for k in range(count))


@workflow("chaos.chain")
def chain(run: Run, n: int) -> int:
    return steps(run, n, 6, 0.1)


@workflow("chaos.fan")
def fan(run: Run, n: int) -> int:
    def nested(run: Run) -> int:
        return sum(run.parallel("inner", a=lambda r: steps(r, n, 2), b=lambda r: steps(r, n, 1)))

    first = run.parallel("fan", left=lambda r: steps(r, n, 3), right=lambda r: steps(r, n, 1, 0.3), deep=nested)
    return int(sum(first)) + steps(run, n, 1)


@workflow("chaos.nap")
def nap(run: Run, n: int) -> int:
    total = 0
    for _ in range(3):
        total += run.step(body, n, name="between")
        run.sleep(0.4)
    return total


@workflow("chaos.flaky")
def flaky(run: Run, n: int) -> int:
    def fails_twice() -> int:
        body(n)
        if run.attempt <= 2:
            raise ValueError("not yet")
        return n

    return int(run.step(fails_twice, name="fails twice", retries=10, backoff=0.2)) + steps(run, n, 1)


@workflow("chaos.desk")
def desk(run: Run, n: int) -> int:
    before = steps(run, n, 2)
    answer = run.pend("chaos-desk")
    return before + int(answer) + steps(run, n, 1)


@workflow("chaos.mail")
def mail(run: Run, n: int) -> list[Any]:
    early = run.receive("early")
    steps(run, n, 2)
    return [early, run.receive("late")]


@workflow("chaos.books")
def books(run: Run, n: int) -> int:
    def book(line: int) -> int:
        body(n)
        with connections[settings().database].cursor() as cursor:
            cursor.execute("INSERT INTO rekindle_chaos (workflow_id, line) VALUES (%s, %s)", [run.id, line])
        return n

    return sum(run.step(book, line, name=f"line {line}", atomic=True) for line in range(4))


@workflow("chaos.lazy", persistence="lazy")
def lazy(run: Run, n: int) -> int:
    first = steps(run, n, 5)
    run.sleep(0.3)
    return first + steps(run, n, 5)


@workflow("chaos.poison", max_recovery_attempts=MAX_DEATHS)
def poison(run: Run, n: int) -> None:
    def kills() -> None:
        body(n, 0)
        os._exit(9)

    steps(run, n, 1)
    run.step(kills, name="kills")

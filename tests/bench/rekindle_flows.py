"""Rekindle's side of the work: the same workflows as in `programs/`, named to the worker by REKINDLE_MODULES."""

from tests.bench.programs import ledger
from workflows import workflow


def add(n: int) -> int:
    return n + 1


def add_noted(n: int) -> int:
    ledger.note("begin", f"steps-{n}", str(n))
    return n + 1


@workflow("bench3")
def bench3(run, n: int) -> int:
    return run.step(add, run.step(add, run.step(add, n)))


def thousand(run, n: int) -> int:
    n = run.step(add_noted, n)
    for _ in range(999):
        n = run.step(add, n)
    return n


@workflow("bench1000")
def bench1000(run, n: int) -> int:
    return thousand(run, n)


@workflow("bench1000lazy", persistence="lazy")
def bench1000lazy(run, n: int) -> int:
    return thousand(run, n)


@workflow("hold")
def hold(run, n: int) -> str:
    for step in "abc":
        run.step(ledger.short, str(n), step)
    return run.step(ledger.long, str(n), "d")


@workflow("chain")
def chain(run, n: int) -> str:
    for step in "abcd":
        run.step(ledger.short, str(n), step, 0.02)
    return str(n)

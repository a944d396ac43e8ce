"""Workflows that the tests run."""

import os
import time
from typing import Any

from workflows import Run, error_pend, pend, pend_again, workflow
from workflows.errors import StepFailed

calls: list[str] = []  # what ran in this process


def note(word: str) -> str:
    """Append to the ledger outside the database, if there is one, and remember it here."""
    calls.append(word)
    if path := os.environ.get("LEDGER"):
        descriptor = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        os.write(descriptor, f"{word}\n".encode())
        os.close(descriptor)
    return word


@workflow("three")
def three(run: Run, tag: str = "t") -> list[str]:
    return [run.step(note, f"{tag}:{n}", name=f"s{n}") for n in range(3)]


@workflow("naps")
def naps(run: Run, seconds: float = 60, tag: str = "t") -> str:
    run.step(note, f"{tag}:before", name="before")
    run.sleep(seconds)
    return str(run.step(note, f"{tag}:after", name="after"))


@workflow("flaky")
def flaky(run: Run, fails: int, tries: int) -> str:
    def body() -> str:
        note("try")
        if run.attempt <= fails:
            raise ValueError(f"attempt {run.attempt}")
        return f"done at {run.attempt}"

    return str(run.step(body, name="body", retries=tries))


@workflow("review")
def review(run: Run) -> Any:
    answer = run.pend("fraud-review")
    return [answer, run.variables.get("limit")]


@workflow("answers")
def answers(run: Run, kind: str, basket: str = "desk") -> Any:
    def body() -> Any:
        note(f"{kind}:{run.attempt}")
        if run.attempt > 1:
            return "second time"
        return {"pend": pend(basket, "first time"), "again": pend_again(basket), "error": error_pend(basket, "no")}[
            kind
        ]

    return run.step(body, name="body")


@workflow("mail")
def mail(run: Run) -> Any:
    return run.receive("letter")


@workflow("fan")
def fan(run: Run, tag: str = "t") -> list[Any]:
    def left(run: Run) -> str:
        run.step(note, f"{tag}:l1", name="l1")
        run.sleep(30)
        return str(run.step(note, f"{tag}:l2", name="l2"))

    def right(run: Run) -> list[str]:
        return list(
            run.parallel(
                "inner", a=lambda r: r.step(note, f"{tag}:a", name="a"), b=lambda r: r.step(note, f"{tag}:b", name="b")
            )
        )

    first = run.parallel("fan", left=left, right=right)
    second = run.parallel("fan", left=lambda r: r.step(note, f"{tag}:again", name="again"))
    return [*first, *second]


@workflow("jump")
def jump(run: Run) -> str:
    def desk(run: Run) -> None:
        run.pend("desk")

    def alarm(run: Run) -> None:
        run.step(note, "alarm", name="alarm")
        run.ticket("stop")

    run.parallel("work", desk=desk, alarm=alarm)
    return "never"


@jump.ticket("stop")
def stopped(run: Run) -> str:
    return f"stopped after {run.step(note, 'cleanup', name='cleanup')}"


@workflow("swallows")
def swallows(run: Run) -> str:
    try:
        run.sleep(60)
    except BaseException:
        note("swallowed")
    run.step(note, "after the sleep", name="after")
    return "end"


@workflow("variables")
def variables(run: Run) -> dict[str, Any]:
    run.set(limit=5)
    run.step(lambda: run.set(seen=True), name="look")
    run.pend("desk")
    return dict(run.variables)


@workflow("lazy", persistence="lazy")
def lazy(run: Run, steps: int = 3) -> int:
    for n in range(steps):
        run.step(note, f"lazy:{n}", name=f"s{n}")
    run.sleep(10)
    return steps


@workflow("recorded")
def recorded(run: Run) -> list[Any]:
    first = [run.now().isoformat(), run.random(), str(run.uuid())]
    run.sleep(1)
    return first


@workflow("slow")
def slow(run: Run, tag: str, seconds: float = 1, steps: int = 3) -> list[str]:
    """Steps that take their time; begun and ended are both in the ledger."""

    def body(n: int) -> str:
        note(f"{tag}:{n}:begun")
        time.sleep(seconds)
        return note(f"{tag}:{n}:ended")

    return [run.step(body, n, name=f"s{n}") for n in range(steps)]


@workflow("held_for_review")
def held_for_review(run: Run, tag: str) -> str:
    def body() -> str:
        note(f"{tag}:begun")
        time.sleep(30 if run.attempt == 1 else 0)
        return note(f"{tag}:ended")

    return str(run.step(body, name="pay", on_crash="hold"))


@workflow("poison")
def poison(run: Run, tag: str) -> None:
    def body() -> None:
        note(f"{tag}:begun")
        os._exit(9)

    run.step(body, name="kills")


@workflow("lazy_atomic", persistence="lazy")
def lazy_atomic(run: Run) -> list[str]:
    """Returns what was stored when its atomic step had been."""
    run.step(note, "first", name="first")
    run.step(note, "booked", name="booked", atomic=True)
    return [str(name) for name in run.step(_stored, str(run.id), name="stored")]


@workflow("compensates")
def compensates(run: Run) -> str:
    """A failure that the body deals with, and one that ends it."""
    try:
        run.step(_refuse, name="book")
    except StepFailed:
        run.step(note, "undone", name="undo")
    return str(run.step(_refuse, name="close"))


@workflow("waits_in_vain")
def waits_in_vain(run: Run) -> Any:
    return run.pend("desk", timeout=60)


def _stored(workflow_id: str) -> list[str]:
    from workflows.models import Step

    return list(Step.objects.filter(workflow=workflow_id).order_by("position").values_list("name", flat=True))


def _refuse() -> None:
    note("refused")
    raise ValueError("refused")


@workflow("keyed")
def keyed(run: Run) -> str:
    return str(run.step(lambda: note(run.idempotency_key), name="pay"))


@workflow("two_naps")
def two_naps(run: Run) -> int:
    run.sleep(30)
    run.sleep(30)
    return 2


@workflow("careful")
def careful(run: Run, on_crash: str) -> str:
    return str(run.step(note, "paid", name="pay", on_crash=on_crash))

"""Waits: each belongs to a step, its deadline is written once, and nothing but its end lets the path go on."""

import pytest
from django.db import OperationalError

from workflows import Run, pend, pend_again, verbs, workflow
from workflows.models import Step
from workflows.testing import rehearse

from . import flows

pytestmark = pytest.mark.django_db


@workflow("fails_then_pends")
def fails_then_pends(run: Run, answer: str) -> object:
    def body() -> object:
        flows.calls.append(f"try {run.attempt}")
        if run.attempt == 1:
            raise ValueError("once")
        return {"pend": pend("desk", "kept"), "again": pend_again("desk")}[answer] if run.attempt == 2 else "third"

    return run.step(body, name="body", retries=3)


@workflow("swallows_values")
def swallows_values(run: Run, what: str) -> object:
    run.step(lambda: verbs.pause(run.id, by="ann").seq, name="act")
    try:
        {
            "now": run.now,
            "receive": lambda: run.receive("x"),
            "set": lambda: run.set(x=1),
            "sleep": lambda: run.sleep(1),
        }[what]()
    except BaseException:
        flows.calls.append("swallowed")
    return "ran on"


@pytest.mark.parametrize(
    ("name", "given", "reason", "alarm", "basket"),
    [
        ("naps", {}, "sleep", True, ""),
        ("flaky", {"fails": 1, "tries": 2}, "retry", True, ""),
        ("review", {}, "pend", False, "fraud-review"),
        ("mail", {}, "pend", False, "signal:letter"),
    ],
)
def test_what_is_paused_says_for_whom_it_waits(name, given, reason, alarm, basket):
    """C4, C50: for a time, for a person, or for the operator who put it aside; its alarm means that and nothing else."""
    paused = rehearse(name, **given).turn()
    assert (paused.status, paused.pause_reason) == ("paused", reason)
    assert (paused.wake_at is not None, paused.basket) == (alarm, basket)

    suspended = verbs.pause(paused.pk, by="ann")

    assert (suspended.status, suspended.pause_reason, suspended.wake_at) == ("paused", "suspended", None)


@pytest.mark.parametrize(("answer", "output"), [("pend", "kept"), ("again", "third")])
def test_the_deadline_of_an_earlier_retry_does_not_end_a_pend(answer, output):
    """I2: only a person ends it; a wake for another reason finds it waiting."""
    flows.calls.clear()
    rehearsal = rehearse("fails_then_pends", answer=answer)
    assert rehearsal.to_end().basket == "desk"
    assert Step.objects.get().wake_at is None

    verbs.pause(rehearsal.workflow.pk, by="ann")
    rehearsal.resume()
    assert rehearsal.to_end().basket == "desk"
    assert flows.calls == ["try 1", "try 2"]

    rehearsal.resume()
    assert rehearsal.to_end().output == output


@pytest.mark.django_db(transaction=True)
def test_the_deadline_of_a_sleep_is_written_once_also_when_its_holder_sees_it_end():
    """◆ Deadlines are written once. In transactions of their own, in which the database's time goes on."""

    @workflow("short_sleep_beside_work")
    def short_sleep_beside_work(run: Run) -> None:
        def works(run: Run) -> None:
            run.step(lambda: deadline.append(Step.objects.get(kind="sleep").wake_at), name="look")
            run.sleep(5)

        run.parallel("both", sleeps=lambda run: run.sleep(0), works=works)

    deadline: list[object] = []
    rehearse("short_sleep_beside_work").to_end()

    assert Step.objects.get(path=".both.sleeps.").wake_at == deadline[0]


@pytest.mark.parametrize("what", ["now", "receive", "set", "sleep"])
def test_a_request_to_stop_cannot_be_swallowed(what):
    """Stops are sticky, wherever a path meets them."""
    flows.calls.clear()

    paused = rehearse("swallows_values", what=what).turn()

    assert (paused.status, paused.pause_reason) == ("paused", "suspended")
    assert flows.calls == ["swallowed"]


@workflow("asks_elsewhere")
def asks_elsewhere(run: Run, away: int) -> str:
    def body() -> str:
        if run.attempt <= away:
            raise OperationalError("connection refused")
        return "answered"

    return str(run.step(body, name="body"))


def test_a_database_that_stays_away_is_asked_ever_more_seldom_and_its_step_says_so():
    """It may be the body's own, and away for days: no try is failed, and the diary does not grow twice a second."""
    run = rehearse("asks_elsewhere", away=4)
    pauses = []
    for times in (1, 2, 3):
        run.turn()
        step = Step.objects.get()
        assert (step.failures, step.error["message"], step.error["away"]) == (0, "connection refused", times)
        pauses.append(step.wake_at - step.began_at)
        run._let_time_pass()

    assert pauses == sorted(pauses)
    done = run.to_end()
    assert (done.output, Step.objects.get().error) == ("answered", None)

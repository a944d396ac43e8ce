"""What needs attention: one line for each kind and name, and whatever is well is not in it."""

from datetime import timedelta

import pytest
from django.utils import timezone

from recovery.attention import attention
from recovery.queries import attention as troubles
from recovery.queries.together import together
from tests.factories import PolicyFactory, RecoveryFactory, StepFactory, WorkerFactory, WorkflowFactory

pytestmark = pytest.mark.django_db


def ago(**away):
    return timezone.now() - timedelta(**away)


def lines():
    rows = together(troubles.given(), found=troubles.ATTENTION)["found"]
    return attention(troubles.read(rows), timezone.now())


def said(line):
    return "".join(part if isinstance(part, str) else part[0] for part in line.why)


def told():
    return [(line.word, line.found.name, line.found.count, said(line)) for line in lines()]


@pytest.fixture
def worker():
    return WorkerFactory(knows={"three": [1, "f"], "order": [1, "f"]})


def test_what_is_well_needs_no_attention(worker):
    for trait in ("queued", "pending", "sleeping", "retrying", "suspended", "completed", "cancelled", "in_lane"):
        WorkflowFactory(**{trait: True})
    WorkflowFactory(running=True, worker=worker)

    assert told() == []


def test_those_with_the_same_trouble_are_one_line(worker):
    for minutes in (22, 5, 1):
        WorkflowFactory(blocked=True, name="payout", key=f"PAY-{minutes}", running_at=ago(minutes=minutes))

    (line,) = lines()

    assert (line.word, line.found.count, line.found.key) == ("Blocked", 3, "PAY-22")


def test_given_up_names_the_step_that_killed(worker):
    error = {"type": "RecoveryFailed", "message": "…", "open": ["render_pdf"]}
    WorkflowFactory(failed=True, name="export", error=error, recovery_attempts=3)
    WorkflowFactory(failed=True, name="export", error=error | {"discarded": {"by": "ada"}})
    WorkflowFactory(failed=True, name="export")

    assert told() == [("Given up", "export", 1, "Step render_pdf killed its worker three times. Waiting for you.")]


def test_an_orphan_that_its_mode_leaves_says_so():
    PolicyFactory(name="order", mode="observe")
    WorkflowFactory(orphan=True, name="order")
    WorkerFactory(knows={"order": [1, "f"]})

    ((word, name, count, sentence),) = told()

    assert (word, name, count) == ("Orphan", "order", 1)
    assert sentence.endswith("The mode is observe: it waits until somebody recovers it.")


def test_an_orphan_that_comes_back_by_itself_says_when(worker):
    one = WorkflowFactory(released=True, name="order")
    RecoveryFactory(
        workflow_id=one.pk,
        worker_name="host-2:812",
        step="charge",
        plan={"kept": 1},
        last_seen_at=ago(seconds=3),
        due_at=timezone.now() + timedelta(seconds=30),
    )

    ((_, _, _, sentence),) = told()

    assert sentence.startswith("Worker host-2:812 died 3 s ago in step charge. Recovery 1 of 3 starts in ")
    assert sentence.endswith("; 1 step is kept.")


def test_whoever_runs_again_needs_no_attention(worker):
    one = WorkflowFactory(running=True, worker=worker, name="order", fence=3)
    RecoveryFactory(workflow_id=one.pk, seq=3, resumed_at=ago(seconds=1))

    assert told() == []


def test_a_crash_whose_effect_is_unknown_is_uncertain(worker):
    one = WorkflowFactory(paused=True, pause_reason="suspended", name="order")
    StepFactory(workflow=one, name="charge", status="waiting", basket="crash_review", error={"type": "Crashed"})

    assert [line.word for line in lines()] == ["Uncertain"]


def test_people_who_let_wait_are_reminded_after_a_day(worker):
    for hours in (1, 30):
        one = WorkflowFactory(pended=True, basket="fraud", name="order")
        one.steps.update(began_at=ago(hours=hours))

    assert told() == [("For people", "order", 1, "Waits for a person in basket fraud for 1 d 6 h.")]


def test_overrunning_says_by_how_much(worker):
    WorkflowFactory(running=True, worker=worker, run_limit=60, running_at=ago(minutes=3))

    assert told() == [("Overrunning", "three", 1, "It may run 1 min and has been running for 3 min.")]


def test_late_and_nobody_takes_it(worker):
    WorkflowFactory(name="order", wake_at=ago(minutes=20))

    assert [line.word for line in lines()] == ["Late"]


def test_without_its_code_nobody_takes_it(worker):
    WorkflowFactory(name="payout", wake_at=ago(minutes=1))
    WorkflowFactory(name="payout", wake_at=ago(minutes=2))

    sentence = "No running worker has the code of payout v1. They continue by themselves when one starts."
    assert told() == [("Blocked", "payout", 2, sentence)]


def test_a_paused_name_is_not_late(worker):
    PolicyFactory(name="order", closed=True)
    WorkflowFactory(name="order", wake_at=ago(minutes=20))

    assert told() == []


def test_the_most_urgent_comes_first(worker):
    WorkflowFactory(name="order", wake_at=ago(minutes=20))
    WorkflowFactory(blocked=True)
    WorkflowFactory(failed=True, error={"type": "RecoveryFailed"}, recovery_attempts=3)

    assert [line.word for line in lines()] == ["Given up", "Blocked", "Late"]

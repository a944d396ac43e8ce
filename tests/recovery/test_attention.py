"""What needs attention: one line for each kind and name, and whatever is well is not in it."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from recovery.attention import KINDS, Group, attention
from recovery.queries import attention as troubles
from recovery.queries.together import together
from recovery.verdict import Kind, Seen
from tests.factories import PolicyFactory, RecoveryFactory, StepFactory, WorkerFactory, WorkflowFactory
from tests.recovery.world import take_lock
from workflows.models import Step, Workflow

pytestmark = pytest.mark.django_db


def ago(**away):
    return timezone.now() - timedelta(**away)


def lines():
    rows = together(troubles.given(), found=troubles.ATTENTION)["found"]
    return troubles.told(troubles.read(rows))


def told():
    return [(line.verdict.word, line.group.name, line.group.count, str(line.why)) for line in lines()]


@pytest.fixture
def worker():
    worker = WorkerFactory(knows={"three": [1, "f"], "order": [1, "f"]})
    take_lock(worker)
    return worker


def test_what_is_well_needs_no_attention(worker):
    for trait in ("queued", "pending", "sleeping", "retrying", "suspended", "completed", "cancelled", "in_lane"):
        WorkflowFactory(**{trait: True})
    WorkflowFactory(running=True, worker=worker)

    assert told() == []


def test_those_with_the_same_trouble_are_one_line(worker):
    for minutes in (22, 5, 1):
        WorkflowFactory(blocked=True, name="payout", key=f"PAY-{minutes}", running_at=ago(minutes=minutes))

    (line,) = lines()

    assert (line.verdict.word, line.group.count, line.more) == ("Blocked", 3, 2)
    assert line.seen.workflow.key == "PAY-22"


def test_given_up_names_the_step_that_killed(worker):
    error = {"type": "RecoveryFailed", "message": "…", "open": ["render_pdf"]}
    WorkflowFactory(failed=True, name="export", error=error, recovery_attempts=3)
    WorkflowFactory(failed=True, name="export", error=error | {"discarded": {"by": "ada"}})
    WorkflowFactory(failed=True, name="export")

    ((word, name, count, sentence),) = told()

    assert (word, name, count) == ("Given up", "export", 1)
    assert "it was recovered 3 times, and its worker died again in step render_pdf. Waiting for you." in sentence


def test_an_orphan_that_its_mode_leaves_says_so():
    PolicyFactory(name="order", mode="observe")
    WorkflowFactory(orphan=True, name="order")
    WorkerFactory(knows={"order": [1, "f"]})

    ((word, name, count, sentence),) = told()

    assert (word, name, count) == ("Orphan", "order", 1)
    assert "; the mode is observe, so it waits until somebody recovers it." in sentence


def test_an_orphan_that_comes_back_by_itself_says_when(worker):
    soon = timezone.now() + timedelta(seconds=30)
    one = WorkflowFactory(released=True, name="order", wake_at=soon)
    StepFactory(workflow=one, name="load", status="done")
    RecoveryFactory(
        workflow_id=one.pk,
        worker_name="host-2:812",
        step="charge",
        plan={"kept": 1},
        last_seen_at=ago(seconds=3),
        due_at=soon,
    )

    ((_, _, _, sentence),) = told()

    assert sentence.startswith("Its worker host-2:812 died 3 s ago; recovery 1 of 3 starts in ")
    assert "1 step is kept" in sentence


def test_whoever_runs_again_needs_no_attention(worker):
    one = WorkflowFactory(running=True, worker=worker, name="order", fence=3)
    RecoveryFactory(workflow_id=one.pk, seq=3, resumed_at=ago(seconds=1))

    assert told() == []


def test_a_crash_whose_effect_is_unknown_is_uncertain(worker):
    one = WorkflowFactory(pended=True, basket="crash_review", name="order")
    one.steps.update(name="charge", kind="step", error={"type": "Crashed"})

    assert [line.verdict.word for line in lines()] == ["Uncertain"]


def test_a_path_held_for_review_is_told_though_another_runs(worker):
    one = WorkflowFactory(running=True, worker=worker, name="order")
    StepFactory(workflow=one, path=".a.", name="charge", status="waiting", basket="crash_review")
    StepFactory(workflow=one, path=".b.", name="ship", status="open")

    assert [line.verdict.word for line in lines()] == ["Held for review"]


def test_people_who_let_wait_are_reminded_after_a_day(worker):
    for hours in (1, 30):
        one = WorkflowFactory(pended=True, basket="fraud", name="order")
        one.steps.update(began_at=ago(hours=hours))

    ((word, name, count, sentence),) = told()

    assert (word, name, count) == ("For people", "order", 1)
    assert sentence.startswith("In basket fraud for 1 d 6 h: a person has to resume it.")


def test_a_full_basket_hides_no_other(worker):
    many = Workflow.objects.bulk_create(
        Workflow(name="order", status="paused", pause_reason="pend", basket="approval")
        for _ in range(troubles.MOST + 1)
    )
    Step.objects.bulk_create(
        Step(
            workflow=one,
            position=0,
            name="approval",
            kind="pend",
            status="waiting",
            basket="approval",
            began_at=ago(days=2),
        )
        for one in many
    )
    WorkflowFactory(pended=True, basket="crash_review", name="order")

    assert {(word, name) for word, name, _, _ in told()} == {("For people", "order"), ("Held for review", "order")}


def test_what_ended_while_it_waited_waits_for_nobody(worker):
    one = WorkflowFactory(status="cancelled", finished_at=timezone.now(), wake_at=None)
    StepFactory(workflow=one, status="waiting", basket="fraud", began_at=ago(days=2))

    assert told() == []


def test_overrunning_says_by_how_much(worker):
    WorkflowFactory(running=True, worker=worker, run_limit=60, running_at=ago(minutes=3))

    ((word, name, count, sentence),) = told()

    assert (word, name, count) == ("Overrunning", "three", 1)
    assert sentence.startswith("It may run 1 min, and has been running for 3 min")


def test_late_and_nobody_takes_it(worker):
    WorkflowFactory(name="order", wake_at=ago(minutes=20))

    assert [line.verdict.word for line in lines()] == ["Late"]


def test_when_nobody_lives_nobody_takes_it():
    WorkflowFactory(name="order", wake_at=ago(minutes=20))

    ((_, _, _, sentence),) = told()

    assert sentence == "Due 20 min ago, and waits: no worker is alive. Start one: manage.py work."


def test_a_backlog_is_late_although_its_reason_is_known(worker):
    type(worker).objects.update(slots=1)
    WorkflowFactory(running=True, worker=worker, name="order")
    WorkflowFactory(name="order", wake_at=ago(minutes=20))

    assert ("Late", "order", 1) in [line[:3] for line in told()]


def test_without_its_code_nobody_takes_it(worker):
    WorkflowFactory(name="payout", wake_at=ago(minutes=1))
    WorkflowFactory(name="payout", wake_at=ago(minutes=2))

    sentence = "No running worker has the code of payout v1. It continues by itself when one starts."
    assert told() == [("Blocked", "payout", 2, sentence)]


def test_a_paused_name_is_not_late(worker):
    PolicyFactory(name="order", closed=True)
    WorkflowFactory(name="order", wake_at=ago(minutes=20))

    assert told() == []


def test_the_most_urgent_comes_first(worker):
    WorkflowFactory(name="order", wake_at=ago(minutes=20))
    WorkflowFactory(blocked=True)
    WorkflowFactory(failed=True, error={"type": "RecoveryFailed"}, recovery_attempts=3)

    assert [line.verdict.word for line in lines()] == ["Given up", "Blocked", "Late"]


def test_what_mended_itself_since_it_was_found_is_left_out(worker):
    """Pure: the group says orphan, the verdict on what was loaded a moment later says that it runs."""
    one = WorkflowFactory(running=True, worker=worker, name="order")
    group = Group(Kind.ORPHAN, "order", 1, one.pk, ago(seconds=3))

    assert attention([group], {one.pk: Seen(one, timezone.now())}) == []
    assert attention([group], {}) == []


def test_every_kind_that_is_looked_for_has_a_place_in_the_order():
    looked_for = set(
        re.findall(r"'([a-z ]+)'(?= AS kind|, (?:w\.)?name| END|, d\.name| WHEN| ELSE)", troubles.ATTENTION)
    )

    assert {kind.value for kind in KINDS} >= {"orphan", "late", "no code"}
    assert {"orphan", "given up", "blocked", "in a basket", "overrunning"} <= looked_for
    assert looked_for <= {kind.value for kind in KINDS}

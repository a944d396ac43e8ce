"""The test kit: deaths where an author wants them, and an end where nobody may go on."""

import pytest
from django.contrib.auth.models import Group

from workflows import Run, workflow
from workflows.models import Policy, Step, Workflow
from workflows.testing import Rehearsal, rehearse

from . import flows

pytestmark = pytest.mark.django_db


@workflow("saves in rehearsal")
def saves(run: Run) -> None:
    run.step(lambda: Group.objects.create(name="one").pk, name="first", atomic=True)
    run.step(lambda: Group.objects.create(name="two").pk, name="second", atomic=True)


@pytest.fixture(autouse=True)
def ledger():
    flows.calls.clear()
    return flows.calls


def made() -> set[str]:
    return set(Group.objects.filter(name__in=["one", "two"]).values_list("name", flat=True))


def test_an_atomic_step_counts_as_recorded():
    rehearsal = rehearse("saves in rehearsal")

    rehearsal.crash_after(1)

    assert made() == {"one"}
    assert rehearsal.to_end().status == "completed"
    assert made() == {"one", "two"}


def test_a_death_in_an_atomic_step_undoes_its_effects():
    """S3-090, S3-110: whether they and its record are there is one question."""
    rehearsal = rehearse("saves in rehearsal")

    orphan = rehearsal.crash_in("second")

    assert (orphan.status, orphan.worker, made()) == ("running", None, {"one"})
    assert rehearsal.steps == [".first"]
    assert rehearsal.to_end().status == "completed"
    assert made() == {"one", "two"}


def test_a_death_in_a_step_repeats_that_step_alone(ledger):
    """S3-103, S3-015."""
    rehearsal = rehearse("three")

    rehearsal.crash_in("s1")

    assert rehearsal.to_end().status == "completed"
    assert ledger == ["t:0", "t:1", "t:1", "t:2"]


def test_a_death_in_a_branch_repeats_that_branch_alone(ledger):
    """S3-104, S3-105, S3-107."""
    rehearsal = rehearse("fan")

    rehearsal.crash_in("b")

    assert rehearsal.to_end().status == "completed"
    assert sorted(ledger) == ["t:a", "t:again", "t:b", "t:b", "t:l1", "t:l2"]


@pytest.mark.parametrize(("on_crash", "status"), [("fail", "failed"), ("later", "completed"), ("rerun", "completed")])
def test_after_a_death_in_a_step_its_author_has_the_word(on_crash, status):
    @workflow("pays")
    def pays(run: Run) -> None:
        run.step(flows.note, "paid", name="pay", on_crash=on_crash)

    rehearsal = rehearse(pays)
    rehearsal.crash_in("pay")

    assert rehearsal.to_end().status == status
    assert len(flows.calls) == (1 if status == "failed" else 2)


def test_variables_and_baskets_come_back():
    """S3-106, S3-108, S3-126, S3-127."""
    rehearsal = rehearse("variables")
    rehearsal.crash_in("desk")

    waiting = rehearsal.to_end()

    assert (waiting.basket, waiting.variables) == ("desk", {"limit": 5, "seen": True})
    assert Step.objects.get(workflow=waiting, kind="pend").status == "waiting"


def test_time_is_let_pass_and_memory_is_lost_between_two_turns(ledger):
    """S0-088, S0-089: wait for a state, let ten seconds pass, start over what is stored; none of it takes time."""
    rehearsal = rehearse("naps", seconds=10)
    assert rehearsal.turn().status == "paused"
    assert rehearsal.turn().status == "paused"  # not yet

    restarted = Rehearsal(Workflow.objects.get(pk=rehearsal.workflow.pk))

    assert restarted.to_end().status == "completed"
    assert ledger == ["t:before", "t:after"]


def test_a_step_it_never_comes_to_is_told():
    with pytest.raises(AssertionError, match="did not come to the step s9"):
        rehearse("three").crash_in("s9")


def test_it_ends_where_a_policy_keeps_it_waiting():
    Policy.objects.create(name="three", paused=True)
    rehearsal = rehearse("three")

    assert rehearsal.to_end().status == "queued"
    assert rehearsal.crash_after(1).status == "queued"

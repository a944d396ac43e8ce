"""What came of a rescue: it counts as recovered by progress after it, or by a good end, and by nothing else."""

import time
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now

from recovery import rescuing, retention
from recovery.models import Recovery
from recovery.models.recovery import Outcome
from recovery.outcomes import OUTCOMES
from recovery.rescues import settle
from recovery.sweep import sweep_now
from workflows import Run, verbs, workflow
from workflows.models import Policy, Step, Workflow
from workflows.testing import rehearse

from .dead import hold

pytestmark = pytest.mark.django_db


@workflow("comes_back")
def comes_back(run: Run, fails_in: str = "") -> None:
    def body(name: str) -> None:
        if name == fails_in:
            raise ValueError("an error of its own")

    for name in ("first", "second", "third"):
        run.step(body, name, name=name)


def outcomes():
    settle()
    return list(Recovery.objects.order_by("id").values_list("outcome", flat=True))


def test_every_outcome_has_its_word():
    assert set(OUTCOMES) == set(Outcome.values)


def test_what_fails_by_itself_before_any_progress_was_not_recovered():
    """C6, design 3: it came back, and that is all that can be said of the rescue."""
    rehearsal = rehearse("comes_back", fails_in="second")
    rehearsal.crash_in("second")

    assert rehearsal.to_end().status == "failed"

    assert outcomes() == ["failed"]
    assert Recovery.objects.get().resumed_at is not None


def test_what_fails_by_itself_after_progress_was_recovered():
    """C6, design 3: recovery has done its work; what came later is another matter."""
    rehearsal = rehearse("comes_back", fails_in="third")
    rehearsal.crash_in("second")

    assert rehearsal.to_end().status == "failed"

    assert outcomes() == ["recovered"]


def test_a_good_end_is_enough_where_no_step_was_left():
    rehearsal = rehearse("comes_back")
    rehearsal.crash_after(3)

    assert rehearsal.to_end().status == "completed"

    assert outcomes() == ["recovered"]


def test_to_run_again_after_a_block_is_no_progress_yet():
    """C8: the block let it off its attempt; that is not what the count is set back for."""
    rehearsal = rehearse("naps")
    rehearsal.crash_after(1)
    recorded = Step.objects.filter(workflow=rehearsal.workflow)
    recorded.update(name="as it was called before")
    rehearsal._let_time_pass()
    assert rehearsal.turn().pause_reason == "blocked"
    assert outcomes() == ["pending"]

    recorded.update(name="before")
    Workflow.objects.update(refused_by="another deploy")
    rehearsal._let_time_pass()
    assert (rehearsal.turn().pause_reason, rehearsal.workflow.recovery_attempts) == ("sleep", 0)

    assert outcomes() == ["pending"]
    rehearsal.to_end()
    assert outcomes() == ["recovered"]


def test_revived_by_hand_and_failed_again_is_no_success():
    """S0-059: nobody died, the operator's rescue is judged as any other."""
    rehearsal = rehearse("comes_back", fails_in="second")
    rehearsal.to_end()
    rescuing.revive(rehearsal.workflow.pk, by="ann", reason="once more")
    assert outcomes() == ["pending"]

    rehearsal.to_end()

    assert outcomes() == ["failed"]


@pytest.mark.parametrize(("verb", "outcome"), [(verbs.cancel, "cancelled"), (verbs.fail, "failed")])
@pytest.mark.parametrize("progress", [False, True])
def test_what_an_operator_ends_was_recovered_if_it_had_got_further(verb, outcome, progress):
    rehearsal = rehearse("naps")
    rehearsal.crash_in("before")
    if progress:
        rehearsal._let_time_pass()
        assert rehearsal.turn().pause_reason == "sleep"

    verb(rehearsal.workflow.pk, by="ann", reason="not needed")

    assert outcomes() == ["recovered" if progress else outcome]


def test_what_cannot_be_read_is_refused():
    """C8, S3-132: set aside for a person to look at."""
    rehearsal = rehearse("comes_back")
    rehearsal.crash_in("second")
    Workflow.objects.update(variables=[1])
    rehearsal._let_time_pass()

    assert rehearsal.turn().pause_reason == "suspended"

    assert outcomes() == ["refused"]


def test_progress_that_nobody_saw_before_the_next_death_counts():
    """C6: the rescue before it is a success, and tells when it ran again."""
    rehearsal = rehearse("comes_back")
    rehearsal.crash_in("second")

    rehearsal.crash_in("third")

    first, second = Recovery.objects.order_by("id")
    assert (first.outcome, second.outcome, second.attempt) == ("recovered", "pending", 1)
    assert first.resumed_at is not None


def test_who_dies_again_without_progress_tells_when_it_ran_again():
    rehearsal = rehearse("comes_back")
    rehearsal.crash_in("second")

    rehearsal.crash_in("second")

    first, second = Recovery.objects.order_by("id")
    assert (first.outcome, second.outcome, second.attempt) == ("died_again", "pending", 2)
    assert first.resumed_at is not None


def test_what_ends_while_its_policy_is_patient_is_settled_too():
    """S0-081: nobody took it over, and nobody has to any more."""
    held = hold("comes_back")
    Policy.objects.create(name="comes_back", stale_after=600)
    sweep_now("worker")
    assert outcomes() == ["pending"]

    verbs.fail(held.pk, by="ann", reason="not needed")

    assert outcomes() == ["failed"]


def test_retention_leaves_a_workflow_until_it_is_known_what_came_of_its_rescue():
    rehearsal = rehearse("comes_back")
    rehearsal.crash_in("second")
    rehearsal.to_end()
    Workflow.objects.update(finished_at=Now() - timedelta(days=31))

    assert "workflows" not in forget()

    assert outcomes() == ["recovered"]
    assert forget()["workflows"] == 1


def test_a_workflow_that_somebody_removed_leaves_no_rescue_under_way():
    rehearsal = rehearse("comes_back")
    rehearsal.crash_in("second")
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM rekindle_step; DELETE FROM rekindle_workflow")

    assert outcomes() == ["cancelled"]


def forget():
    return retention.forget("scheduled task", time.monotonic() + 60).note

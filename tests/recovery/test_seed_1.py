"""Seed 1: what a reset leaves behind, row by row. Without processes; the row is aged, not the clock."""

import pytest
from django.db import IntegrityError, transaction

from recovery.checking import check
from recovery.sweep import sweep_now
from tests.recovery.world import ago, dead_worker, done, opened, put, running
from tests.workflows import flows
from workflows.models import Event, Status, Step, Worker, Workflow
from workflows.testing import Rehearsal, rehearse

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_ran_yet(settings):
    settings.REKINDLE = settings.REKINDLE | {"DEATH_GAP": 0.01}
    flows.calls.clear()


def reset(workflow: Workflow) -> Workflow:
    """Everything in memory is gone; a process starts over what is stored and looks around."""
    Worker.objects.filter(ended_at=None).update(ended_at=ago(0), ended_why="died")
    sweep_now("start-up")
    return Rehearsal(workflow).to_end()


# -- the impact matrix --------------------------------------------------------------------------------------------------


def test_reset_during_a_step():
    """S1-019, S1-018, S1-003: running, no alarm: recovered."""
    workflow = running(dead_worker(), done("s0", result="t:0"), opened("s1", 1))

    assert reset(workflow).output == ["t:0", "t:1", "t:2"]
    assert flows.calls == ["t:1", "t:2"]


def test_reset_after_the_alarm_and_before_the_status():
    """S1-014, S1-015, S1-017, S1-020, S1-013: running, alarm set: its alarm is its recovery, and is never ignored."""
    workflow = running(None, wake_at=ago(1))
    assert check(workflow.pk).reason == "orphaned_alarm"

    assert reset(workflow).status == Status.COMPLETED


def test_reset_during_a_sleep():
    """S1-021, S1-012: paused, alarm set: resumes as if nothing had been."""
    rehearsal = rehearse("naps")
    assert rehearsal.turn().status == Status.PAUSED

    workflow = reset(rehearsal.workflow)

    assert (workflow.status, workflow.recoveries) == (Status.COMPLETED, 0)
    assert flows.calls == ["t:before", "t:after"]


def test_reset_while_queued():
    """S1-022."""
    rehearsal = rehearse("three")

    workflow = reset(rehearsal.workflow)

    assert (workflow.status, workflow.recoveries) == (Status.COMPLETED, 0)


def test_status_and_alarm_cannot_be_apart():
    """S1-002, S1-038, C12: neither a pause without its alarm nor a hold with one can be stored."""
    for status, fields in (("paused", {"pause_reason": "sleep"}), ("running", {})):
        with pytest.raises(IntegrityError, match="alive_means_someone_will_wake_it"), transaction.atomic():
            put(Workflow(name="three", status=status, wake_at=None, **fields))


def test_the_pause_its_alarm_and_its_event_are_one_commit():
    """S1-008..S1-011, S1-038, C12: all three agree."""
    workflow = rehearse("naps", seconds=60).turn()

    sleep = Step.objects.get(workflow=workflow, kind="sleep")
    assert (workflow.status, workflow.pause_reason, workflow.wake_at) == ("paused", "sleep", sleep.wake_at)
    assert list(workflow.events.order_by("-seq").values_list("type", flat=True)[:2]) == [
        "workflow.paused",
        "sleep.started",
    ]


# -- what survives ------------------------------------------------------------------------------------------------------


@pytest.fixture
def survivor() -> Workflow:
    """Two steps done, asleep; then everything that was in memory went."""
    rehearsal = rehearse("naps", tag="kept")
    rehearsal.turn()
    Worker.objects.filter(ended_at=None).update(ended_at=ago(0), ended_why="died")
    sweep_now("start-up")
    rehearsal.workflow.refresh_from_db()
    return rehearsal.workflow


def test_the_status_survives(survivor):
    """S1-023, S1-006."""
    assert survivor.status == Status.PAUSED


def test_completed_steps_and_their_results_survive(survivor):
    """S1-024, S1-025."""
    step = Step.objects.get(workflow=survivor, name="before")

    assert (step.status, step.result) == ("done", "kept:before")


def test_alarm_and_pending_time_survive(survivor):
    """S1-026, S1-027, S1-007."""
    assert survivor.wake_at == Step.objects.get(workflow=survivor, kind="sleep").wake_at
    assert survivor.wake_at > ago(0)


def test_a_replay_counts_its_pauses_from_the_beginning_and_copes():
    """S1-028, B3: the second sleep is not taken for the first."""
    rehearsal = rehearse("two_naps")
    rehearsal.turn()
    rehearsal._let_time_pass()
    assert rehearsal.turn().status == Status.PAUSED

    assert reset(rehearsal.workflow).output == 2
    assert Step.objects.filter(workflow=rehearsal.workflow, kind="sleep", status="done").count() == 2


def test_no_event_lives_only_in_memory(survivor):
    """S1-029, S1-010, C15: numbered without gaps, up to the last change."""
    numbers = list(Event.objects.filter(workflow=survivor).order_by("seq").values_list("seq", flat=True))

    assert numbers == list(range(1, survivor.seq + 1))


def test_the_active_execution_is_lost_and_nothing_else():
    """S1-030, S1-004, S3-005."""
    workflow = running(dead_worker(), done("s0", result="t:0"), opened("s1", 1))

    reset(workflow)

    step = Step.objects.get(workflow=workflow, name="s1")
    assert (step.attempt, step.failures, step.status) == (2, 0, "done")


# -- the fixes ----------------------------------------------------------------------------------------------------------


def test_fix_1_runs_again_from_the_top_and_skips_what_is_done():
    """S1-032, S1-035, C59: option A, the default."""
    rehearsal = rehearse("three")
    rehearsal.crash_after(2)
    flows.calls.clear()

    rehearsal.to_end()

    assert flows.calls == ["t:2"]


@pytest.mark.parametrize(
    ("on_crash", "status", "reason"), [("fail", "failed", ""), ("later", "paused", "retry"), ("hold", "paused", "pend")]
)
def test_fix_1_other_ways_out_are_the_authors_choice(on_crash, status, reason):
    """S1-033, S1-034, C32, C59: fail as interrupted, later with backoff, or a person's review."""
    workflow = running(None, opened("pay", on_crash=on_crash), name="careful", input={"on_crash": on_crash})

    workflow = Rehearsal(workflow).turn()

    assert (workflow.status, workflow.pause_reason) == (status, reason)
    assert flows.calls == []


@pytest.mark.parametrize("running_at", [60, None])
def test_fix_2_start_up_finds_it_and_sets_an_alarm(running_at):
    """S1-036, S1-037, S1-016."""
    workflow = running(dead_worker(), running_at=running_at and ago(running_at))

    sweep_now("start-up")

    workflow.refresh_from_db()
    assert (workflow.worker, workflow.wake_at is None) == (None, False)


def test_a_sleep_whose_time_has_come_resumes():
    """S1-031, C11: as if it had been paused."""
    rehearsal = rehearse("naps", seconds=0.001)
    rehearsal.turn()

    assert reset(rehearsal.workflow).status == Status.COMPLETED

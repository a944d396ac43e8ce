"""Seed 0: a workflow that was running when its process went away. Without processes; the row is aged, not the clock."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils import timezone

from recovery.checking import check
from recovery.models import Recovery
from recovery.models.recovery import Reason
from recovery.sweep import sweep_now
from tests.recovery.dead import die, hold, make_due
from tests.recovery.world import ago, dead_worker, done, live_worker, opened, put, running, silent_worker
from tests.workflows import flows
from workflows.models import Status, Step, Worker, Workflow
from workflows.moves import MOVES
from workflows.testing import Rehearsal, rehearse

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_ran_yet(settings):
    settings.REKINDLE = settings.REKINDLE | {"DEATH_GAP": 0.01}
    flows.calls.clear()


def types(workflow: Workflow) -> list[str]:
    return list(workflow.events.order_by("seq").values_list("type", flat=True))


# -- the start-up check -----------------------------------------------------------------------------------------------


def test_detects_a_stale_running_workflow_at_start_up():
    """S0-083, S0-004, S0-013, S0-035: running, 60 s old: an alarm is set, a tenth of a second ahead."""
    workflow = running(silent_worker(60), name="three")

    sweep_now("start-up")

    workflow.refresh_from_db()
    assert (workflow.status, workflow.worker) == (Status.RUNNING, None)
    assert workflow.wake_at - timezone.now() < timedelta(seconds=1)
    assert Recovery.objects.get().detected_by == "start-up"


def test_nothing_stored_nothing_happens():
    """S0-028."""
    assert sweep_now("start-up")["found"] == 0


@pytest.mark.parametrize("status", [status for status in Status.values if status != Status.RUNNING])
def test_any_other_status_is_left_alone(status):
    """S0-029, S0-040, S0-041."""
    finished = {"finished_at": ago(60)} if status in ("completed", "failed", "cancelled") else {"wake_at": ago(60)}
    workflow = put(Workflow(name="three", status=status, running_at=ago(60), **finished))

    sweep_now("start-up")

    workflow.refresh_from_db()
    assert (workflow.status, workflow.fence) == (status, 0)


def test_running_and_alive_gets_no_alarm():
    """S0-036, S0-030, C2: however long it has been running."""
    workflow = running(live_worker(), running_at=ago(3600))

    sweep_now("start-up")

    workflow.refresh_from_db()
    assert (workflow.wake_at, workflow.worker is None) == (None, False)


@pytest.mark.parametrize(("silence", "found"), [(29, 0), (30, 1)])
def test_thirty_seconds_of_silence(silence, found):
    """S0-032, S0-033, C1: always >=."""
    worker = silent_worker(silence)
    worker.pooled = True  # so that its silence alone decides
    worker.save()
    running(worker)

    assert sweep_now("start-up")["released"] == found


def test_without_a_running_time_it_is_due_all_the_same():
    """S0-031, S0-090, S0-091, C14: nobody knows since when, so nothing is waited for."""
    workflow = running(None, running_at=None)

    found = check(workflow.pk)

    assert (found.scheduled, found.stale_for) == (True, None)


# -- the transitions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["enforce", "off"])
def test_started_and_resumed_say_since_when(settings, mode):
    """S0-016, S0-022, S0-037, S0-038, S0-074, S1-040: also where nothing is acted upon, tracking goes on."""
    settings.REKINDLE = settings.REKINDLE | {"MODE": mode}
    rehearsal = rehearse("naps")
    rehearsal.turn()
    first = rehearsal.workflow.running_at
    Workflow.objects.filter(pk=rehearsal.workflow.pk).update(running_at=ago(3600))

    rehearsal.to_end()

    assert first is not None
    assert rehearsal.workflow.running_at > ago(1800)
    assert [word for word in types(rehearsal.workflow) if word in ("workflow.started", "workflow.resumed")] == [
        "workflow.started",
        "workflow.resumed",
    ]


@pytest.mark.parametrize(
    ("status", "carries"),
    [
        ("completed", "finished_at"),
        ("failed", "finished_at"),
        ("cancelled", "finished_at"),
        ("pending", "wake_at"),
        ("queued", "wake_at"),
        ("paused", "wake_at"),
    ],
)
def test_a_state_cannot_be_stored_without_what_it_carries(status, carries):
    """S0-020..S0-026, C13."""
    with pytest.raises(IntegrityError, match="alive_means_someone_will_wake_it"), transaction.atomic():
        put(Workflow(name="three", status=status, **{carries: None}))


def test_a_recovery_is_a_move_of_its_own():
    """S0-055, C54: started is told once, and resumed is not told at all."""
    rehearsal = rehearse("three")
    rehearsal.crash_after(1)

    rehearsal.to_end()

    assert MOVES["recover"] == ({Status.RUNNING}, Status.RUNNING)
    told = types(rehearsal.workflow)
    assert told.count("workflow.started") == 1
    assert "workflow.recovered" in told
    assert "workflow.resumed" not in told


def test_nothing_is_completed_that_has_not_run():
    """S0-069, C58: however quickly it goes, it passes through running; there is no move that leaves it out."""
    ways = {status for allowed, target in MOVES.values() if target == Status.COMPLETED for status in allowed}
    assert ways == {Status.RUNNING}

    done = rehearse("three").to_end()

    told = types(done)
    assert done.running_at is not None
    assert told.index("workflow.queued") < told.index("workflow.started") < told.index("workflow.completed")


# -- the recovery handler ---------------------------------------------------------------------------------------------


def test_recovers_a_running_workflow_and_skips_what_it_had_done():
    """S0-084, S0-039, S0-042, S0-054, S0-056: same id, same input; step one is read, step two runs."""
    rehearsal = rehearse("three", tag="in")
    before = rehearsal.workflow.pk
    rehearsal.crash_after(1)
    flows.calls.clear()

    workflow = rehearsal.to_end()

    assert (workflow.pk, workflow.input, workflow.status) == (before, {"tag": "in"}, "completed")
    assert flows.calls == ["in:1", "in:2"]


def test_the_attempt_is_counted_before_anything_runs():
    """S0-018, S0-044, S0-049, S0-075, C19: it is in the claim's own statement."""
    workflow = hold("three")
    die(workflow.worker)
    sweep_now("worker")
    make_due(workflow)

    Rehearsal(workflow).turn()

    told = workflow.events.get(type="workflow.recovered")
    assert told.attempt == 1
    assert told.seq < workflow.events.get(type="workflow.completed").seq


@pytest.mark.parametrize(("attempts", "outcome"), [(2, "released"), (3, "gave_up")])
def test_fails_after_the_maximum_of_attempts(attempts, outcome):
    """S0-085, S0-045..S0-048, S0-019, C5, C7: three tries; the fourth detection fails it, and all stays readable."""
    workflow = running(dead_worker(), done("s0"), opened("s1", 1), recovery_attempts=attempts)

    assert sweep_now("worker")[outcome] == 1

    workflow.refresh_from_db()
    if outcome == "released":
        assert workflow.status == Status.RUNNING
        return
    assert workflow.status == Status.FAILED
    assert workflow.error["message"] == "Workflow recovery failed after 3 attempts"
    assert workflow.error["completed_steps"] == ["s0"]
    assert workflow.error["open"] == ["s1"]
    assert workflow.steps.count() == 2


def test_the_maximum_is_its_own():
    """S0-019, S0-082, C56."""
    workflow = running(dead_worker(), recovery_attempts=3, max_recovery_attempts=5)

    sweep_now("worker")

    workflow.refresh_from_db()
    assert workflow.status == Status.RUNNING


def test_progress_clears_the_counter():
    """S0-057, C6: in the transaction that stores it; the count of all recoveries stays."""
    rehearsal = rehearse("three")
    rehearsal.crash_after(1)

    rehearsal.to_end()

    assert (rehearsal.workflow.recovery_attempts, rehearsal.workflow.recoveries) == (0, 1)


def test_a_definition_that_is_gone_burns_no_attempt():
    """S0-043, S0-052, C8, C9: it is visible, waits, and is not claimed."""
    workflow = running(dead_worker(), name="gone")

    sweep_now("worker")

    workflow.refresh_from_db()
    assert (workflow.status, workflow.recovery_attempts) == (Status.RUNNING, 0)
    assert check(workflow.pk).reason == "definition_missing"


# -- a pause that was pending -----------------------------------------------------------------------------------------


def test_resumes_a_pause_whose_time_has_passed():
    """S0-086, S0-053, S0-015, S0-075: a second ago; it goes on, and its wait is over for good."""
    rehearsal = rehearse("naps", seconds=60)
    rehearsal.turn()
    Step.objects.filter(workflow=rehearsal.workflow, kind="sleep").update(wake_at=ago(1))
    Workflow.objects.filter(pk=rehearsal.workflow.pk).update(wake_at=ago(1))

    workflow = rehearsal.turn()

    assert (workflow.status, workflow.wake_at) == ("completed", None)
    assert Step.objects.get(workflow=workflow, kind="sleep").status == "done"


def test_a_pause_that_lies_ahead_keeps_its_time():
    """C11: nothing runs before it, and it is not begun anew."""
    rehearsal = rehearse("naps", seconds=60)
    workflow = rehearsal.turn()
    due = workflow.wake_at

    sweep_now("start-up")
    workflow = rehearsal.turn()

    assert (workflow.status, workflow.wake_at) == ("paused", due)


def test_running_with_a_pending_pause_cannot_be_stored():
    """S0-053, C11, C12: held, and an alarm set: the constraint refuses it."""
    with pytest.raises(IntegrityError, match="alive_means_someone_will_wake_it"), transaction.atomic():
        running(live_worker(), wake_at=ago(1))


# -- the event --------------------------------------------------------------------------------------------------------


def test_the_event_of_a_recovery():
    """S0-051, S0-058, S0-008, S0-077: attempt in the event, reason in its record."""
    rehearsal = rehearse("three")
    rehearsal.crash_after(1)
    rehearsal.to_end()

    told = rehearsal.workflow.events.get(type="workflow.recovered")
    record = Recovery.objects.get(workflow_id=rehearsal.workflow.pk)

    assert (told.attempt, record.attempt, record.reason) == (1, 1, "infrastructure_restart")


def test_the_reasons_are_those_of_the_seed():
    """S0-059."""
    assert set(Reason.values) == {"infrastructure_restart", "stale_detection", "manual"}


def test_silence_is_stale_detection():
    """S0-059."""
    running(silent_worker(60))

    sweep_now("worker")

    assert Recovery.objects.get().reason == "stale_detection"


def test_every_event_of_a_life():
    """S0-060, S0-014: queued, started, paused, resumed, completed; failed and cancelled in their turn."""
    told = rehearse("naps")
    told.to_end()

    words = [word.removeprefix("workflow.") for word in types(told.workflow) if word.startswith("workflow.")]
    assert words == ["queued", "started", "paused", "resumed", "completed"]


def test_recovering_twice_is_recovering_once():
    """S0-006: two sweeps over the same orphan."""
    running(silent_worker(60))

    first, second = sweep_now("worker"), sweep_now("scheduled task")

    assert (first["released"], second["released"]) == (1, 0)
    assert Recovery.objects.count() == 1


def test_a_recovered_workflow_may_become_stale_again():
    """S0-073, S0-070: and is found again, one attempt further on."""
    workflow = hold("three")
    for attempt in (1, 2):
        die(workflow.worker)
        sweep_now("worker")
        make_due(workflow)
        assert Recovery.objects.filter(attempt=attempt).exists()
        successor = Worker.objects.create(host="h", pid=attempt, ended_why="")
        Workflow.objects.filter(pk=workflow.pk).update(
            worker=successor, wake_at=None, recovery_attempts=attempt, running_at=Now()
        )
        workflow.refresh_from_db()

    assert sorted(Recovery.objects.values_list("attempt", "outcome")) == [(1, "died_again"), (2, "pending")]

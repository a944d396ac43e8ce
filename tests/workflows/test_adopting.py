"""Work begun elsewhere comes in as an orphan: what was done is kept, the rest is recovered."""

from datetime import datetime, timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from workflows import Run, adopt, start, workflow
from workflows.errors import BadInput, BadValue, KeyTaken
from workflows.models import Event, Step, Workflow
from workflows.testing import Rehearsal

from . import flows

pytestmark = pytest.mark.django_db


@workflow("testWorkflow")
def two_steps(run: Run, size: int = 0):
    return [run.step(flows.note, name, name=name) for name in ("step1", "step2")]


@pytest.fixture(autouse=True)
def ledger():
    flows.calls.clear()
    return flows.calls


def ago(seconds):
    return timezone.now() - timedelta(seconds=seconds)


def in_seconds(one):
    return (one.wake_at - timezone.now()).total_seconds()


def test_detects_stale_running_workflow():
    """S0-083, S0-030, S0-033, C2: running for 60 s, so an alarm is set, and it has come."""
    adopted = adopt("testWorkflow", {}, steps_done={}, running_at=ago(60))

    assert (adopted.status, adopted.worker) == ("running", None)
    assert adopted.wake_at is not None
    assert in_seconds(adopted) <= 0


def test_recovers_running_workflow_via_alarm(ledger):
    """S0-084: completedSteps [step1]; step1 is skipped, step2 ends among the completed steps."""
    rehearsal = Rehearsal(adopt("testWorkflow", {}, steps_done={"step1": "one"}, running_at=ago(60)))

    ended = rehearsal.to_end()

    assert (ended.status, ended.output) == ("completed", ["one", "step2"])
    assert ledger == ["step2"]
    assert list(Step.objects.filter(status="done").order_by("position").values_list("name", flat=True)) == [
        "step1",
        "step2",
    ]


def test_its_first_claim_counts_as_the_first_recovery():
    """C5: counted before any of its code runs."""
    rehearsal = Rehearsal(adopt("testWorkflow", {}, steps_done={}, running_at=ago(60), by="importer"))
    rehearsal.to_end()

    diary = Event.objects.filter(workflow=rehearsal.workflow).order_by("seq")
    assert [event.type for event in diary][:3] == ["workflow.queued", "workflow.adopted", "workflow.recovered"]
    assert [event.seq for event in diary] == list(range(1, len(diary) + 1))
    assert [event.fence for event in diary][:3] == [0, 1, 2]
    assert (diary[1].data["by"], diary[2].attempt, rehearsal.workflow.recoveries) == ("importer", 1, 1)


def test_without_a_time_it_is_stale_for_certain(ledger):
    """S0-009, S0-031, S0-090, S1-037, C14: a legacy row keeps working."""
    rehearsal = Rehearsal(adopt("testWorkflow", {}, steps_done={"step1": 1}))
    assert rehearsal.workflow.running_at is None
    assert in_seconds(rehearsal.workflow) <= 0

    assert rehearsal.to_end().output == [1, "step2"]
    assert ledger == ["step2"]


def test_what_began_a_moment_ago_is_left_alone_until_the_threshold(settings):
    """S0-036, S3-070, C2: it may be running elsewhere."""
    settings.REKINDLE = {"STALE_AFTER": 300}

    adopted = adopt("testWorkflow", {}, steps_done={}, running_at=ago(60))

    assert adopted.wake_at - adopted.running_at == timedelta(seconds=300)


def test_a_time_that_lies_ahead_counts_as_now():
    """Faults: a wrong clock elsewhere must not put it off for years."""
    adopted = adopt(
        "testWorkflow", {}, steps_done={}, running_at=datetime(2999, 1, 1, tzinfo=timezone.get_default_timezone())
    )

    assert in_seconds(adopted) <= 30


def test_its_recovery_fields_begin_empty():
    """S4-117: recoveryAttempts 0, the other new fields empty."""
    adopted = adopt("testWorkflow", {}, steps_done={})

    assert (adopted.recovery_attempts, adopted.recoveries, adopted.suspects, adopted.error) == (0, 0, None, None)


def test_an_import_that_is_run_twice_adopts_once(ledger):
    """S0-006: the second finds the first, however far it is."""
    rehearsal = Rehearsal(adopt("testWorkflow", {}, steps_done={"step1": 1}, key="L-1"))
    rehearsal.to_end()

    again = adopt("testWorkflow", {}, steps_done={"step1": 1}, key="L-1")

    assert (again.pk, again.status) == (rehearsal.workflow.pk, "completed")
    assert Step.objects.count() == 2
    with pytest.raises(KeyTaken):
        adopt("testWorkflow", {"size": 1}, steps_done={}, key="L-1")
    assert start("testWorkflow", key="L-1").pk == again.pk


def test_an_import_that_dies_in_the_middle_leaves_nothing():
    """I6."""

    def import_and_die():
        with transaction.atomic():
            adopt("testWorkflow", {}, steps_done={"step1": 1})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_and_die()

    assert not Workflow.objects.exists()
    assert not Step.objects.exists()
    assert not Event.objects.exists()


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"steps_done": {"step1": object()}}, BadValue),
        ({"steps_done": {"step1": "\0"}}, BadValue),
        ({"steps_done": {"x" * 201: 1}}, BadValue),
        ({"steps_done": {}, "running_at": datetime(2020, 1, 1)}, BadInput),
        ({"steps_done": {}, "input": {"weight": 1}}, BadInput),
    ],
)
def test_what_cannot_be_stored_is_refused(given, refusal):
    with pytest.raises(refusal):
        adopt("testWorkflow", **given)

    assert not Workflow.objects.exists()


def test_steps_that_the_code_does_not_have_block_it_and_are_named():
    """It waits for code that fits; nothing runs twice."""
    blocked = Rehearsal(adopt("testWorkflow", {}, steps_done={"step9": 1}))

    blocked.turn()

    assert (blocked.workflow.status, blocked.workflow.pause_reason) == ("paused", "blocked")
    assert "step9" in blocked.workflow.error["message"]

"""What is left to read after a recovery, and the questions the seeds ask of it."""

from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import Avg, Count, Max, Min
from django.db.models.functions import Now

from recovery.models import Recovery
from recovery.rescues import settle
from recovery.sweep import sweep_now
from workflows.models import Event, Workflow

from .dead import claim_again, die, get_on, hold, silence, worker

pytestmark = pytest.mark.django_db


def rescue(workflow):
    workflow.refresh_from_db()
    die(workflow.worker)
    sweep_now("worker")


def test_recoveries_are_counted_by_reason_with_their_average_attempt():
    """S0-078, S0-079, S0-100."""
    twice, silent = hold("three"), hold("naps")
    silence(silent.worker)
    rescue(twice)
    rescue(claim_again(twice))
    sweep_now("worker")

    asked = Recovery.objects.filter(workflow_id__in=[twice.pk, silent.pk]).values("reason")
    told = {row["reason"]: (row["count"], row["avg"]) for row in asked.annotate(count=Count("id"), avg=Avg("attempt"))}

    assert told == {"infrastructure_restart": (2, 1.5), "stale_detection": (1, 1.0)}
    outcomes = Recovery.objects.filter(workflow_id=twice.pk).order_by("id").values_list("outcome", flat=True)
    assert list(outcomes) == ["died_again", "pending"]


def test_workflows_that_needed_recovery_are_listed_with_their_attempts_and_times():
    """S0-101."""
    once = hold("naps")
    rescue(once)
    twice = hold("three")
    rescue(twice)
    rescue(claim_again(twice))

    listed = (
        Recovery.objects.values("workflow_id", "workflow_name")
        .annotate(total=Max("attempt"), first=Min("detected_at"), last=Max("detected_at"))
        .order_by("-total")
    )

    assert [(row["workflow_id"], row["total"]) for row in listed] == [(twice.pk, 2), (once.pk, 1)]
    assert listed[0]["first"] <= listed[0]["last"]


def test_whatever_happens_to_the_workflow_its_trail_stays():
    """S0-047, S0-104, C5: given up for good, its diary and its rescues can be read, and not be changed."""
    workflow = hold(max_recovery_attempts=1)
    rescue(workflow)
    rescue(claim_again(workflow))

    workflow.refresh_from_db()
    assert workflow.status == "failed"
    told = list(Event.objects.filter(workflow=workflow).order_by("seq").values_list("type", flat=True))
    assert told[-4:] == ["workflow.started", "workflow.orphaned", "workflow.recovered", "workflow.failed"]
    assert Recovery.objects.filter(workflow_id=workflow.pk).count() == 2
    for wrong in ("UPDATE rekindle_event SET type = ''", "DELETE FROM rekindle_event"):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(wrong)


def test_the_log_says_who_died_and_what_was_taken_over(caplog):
    """S0-034, S3-071, S3-074, S3-076."""
    workflow = hold()

    with caplog.at_level("WARNING", logger="rekindle"):
        sweep_now("scheduled task")

    assert f"worker {workflow.worker} ({workflow.worker.pk}) died" in caplog.messages
    assert "took over 1, gave up 0, cancelled 0" in caplog.messages


def test_the_log_says_what_came_of_a_recovery(caplog):
    """S3-095: once, with its duration if it succeeded; whoever looks again has nothing new to say."""
    caplog.set_level("INFO", "rekindle")
    workflow = hold()
    rescue(workflow)
    rescue(claim_again(workflow))
    claim_again(workflow)
    get_on(workflow)

    for _ in range(2):
        settle()

    told = [record for record in caplog.records if record.message.startswith(f"Recovery of workflow {workflow.pk}")]
    assert [(one.levelname, one.attempt) for one in told] == [("WARNING", 1), ("INFO", 2)]
    assert "died again" in told[0].message
    took = Recovery.objects.get(outcome="recovered")
    assert told[1].durationMs == round(took.seconds_to_resume * 1000)
    assert f"succeeded: it ran again after {told[1].durationMs} ms" in told[1].message


def test_a_run_that_is_long_but_whose_worker_beats_is_not_stale():
    """S0-017, S0-092, S1-041, S3-066, C1, C2, C36: silence is judged, not age."""
    alive = worker(pooled=True)  # whose lock says nothing: only its heartbeat does
    workflow = hold(by=alive, running_at=Now() - timedelta(hours=5))

    assert sweep_now("worker")["found"] == 0

    silence(alive)
    assert sweep_now("worker")["released"] == 1
    assert Workflow.objects.get(pk=workflow.pk).worker is None

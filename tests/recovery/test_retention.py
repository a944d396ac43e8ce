"""What is old goes, what is kept stays, in batches, through the doors the database leaves open for it."""

import time
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now

from recovery import duties, retention
from recovery.models import Alert, AuditEntry, Batch, BatchItem, Duty, Recovery
from tests.factories import BatchFactory, BatchItemFactory
from workflows import start, start_many
from workflows.ids import uuid7
from workflows.models import Event, Policy, Step, Worker, Workflow
from workflows.testing import rehearse

pytestmark = pytest.mark.django_db(transaction=True)

FORGET = "SELECT rekindle_forget(%s, interval '30 days')"


def days_ago(days):
    return Now() - timedelta(days=days)


def finished(name, days, **input):
    rehearsal = rehearse(name, **input)
    rehearsal.to_end()
    Workflow.objects.filter(pk=rehearsal.workflow.pk).update(finished_at=days_ago(days))
    return rehearsal.workflow.pk


def forget():
    return retention.forget("worker", time.monotonic() + 60).note


def test_a_finished_workflow_goes_after_a_month_with_all_that_belongs_to_it():
    finished("three", 31)
    kept = finished("three", 29)
    start("three")

    assert forget()["workflows"] == 1

    assert Workflow.objects.count() == 2
    assert set(Event.objects.values_list("workflow_id", flat=True)) == set(
        Workflow.objects.values_list("pk", flat=True)
    )
    assert set(Step.objects.values_list("workflow_id", flat=True)) == {kept}


def test_the_door_itself_lets_nothing_through_that_lives_or_is_young():
    """I1: whoever calls it, and whatever was found before: an operator may have revived it meanwhile."""
    alive, young, old = start("three").pk, finished("three", 1), finished("three", 31)

    with connection.cursor() as cursor:
        forgotten = [cursor.execute(FORGET, [pk]).fetchone()[0] for pk in (alive, young, old)]

    assert forgotten == [False, False, True]
    assert set(Workflow.objects.values_list("pk", flat=True)) == {alive, young}


def test_a_policy_keeps_its_name_for_longer_or_shorter():
    Policy.objects.create(name="three", keep_finished=400 * 86400)
    Policy.objects.create(name="recorded", keep_finished=86400)
    finished("three", 100)
    finished("recorded", 2)

    forget()

    assert list(Workflow.objects.values_list("name", flat=True)) == ["three"]


def test_more_than_a_batch_goes_in_several(monkeypatch):
    monkeypatch.setattr(retention, "BATCH", 3)
    start_many("three", [{"tag": str(n)} for n in range(10)])
    Workflow.objects.update(status="cancelled", wake_at=None, finished_at=days_ago(31))

    assert forget()["workflows"] == 10


def test_it_stops_when_its_time_is_up():
    finished("three", 31)

    retention.forget("worker", time.monotonic() - 1)

    assert Workflow.objects.count() == 1


def test_history_goes_after_400_days_the_audit_through_its_trigger():
    for days in (401, 399):
        Recovery.objects.create(
            workflow_id=uuid7(),
            workflow_name="order",
            fence=1,
            finding="dead_worker",
            reason="stale_detection",
            detected_by="worker",
            attempt=1,
            max_attempts=3,
            detected_at=days_ago(days),
        )
        Alert.objects.create(rule_name="r", severity="info", threshold=1, value=2, peak=2, resolved_at=days_ago(days))
        AuditEntry.objects.create(actor="a", via="cli", act="fail", subject="workflow", at=days_ago(days))
        Duty.objects.create(name="sweep", ran_by="worker", found=1, began_at=days_ago(days), ended_at=days_ago(days))

    assert forget() == {"recoveries": 1, "alerts": 1, "audit entries": 1, "duties": 1}

    assert [model.objects.count() for model in (Recovery, Alert, AuditEntry, Duty)] == [1, 1, 1, 1]


def test_batches_go_with_their_items_after_400_days_once_they_are_over(monkeypatch):
    monkeypatch.setattr(retention, "BATCH", 2)
    old, young = BatchFactory(over=True), BatchFactory(over=True)
    waiting = BatchFactory(begun_at=days_ago(401))
    Batch.objects.filter(pk=old.pk).update(ended_at=days_ago(401))
    for batch in (old, old, old, young, waiting):
        BatchItemFactory(batch=batch)

    assert forget() == {"batch items": 3, "batches": 1}

    assert set(Batch.objects.values_list("pk", flat=True)) == {young.pk, waiting.pk}
    assert set(BatchItem.objects.values_list("batch", flat=True)) == {young.pk, waiting.pk}


def test_quiet_runs_are_thinned_after_a_week_and_killed_ones_are_not():
    for days, found, ended in ((8, 0, True), (6, 0, True), (8, 2, True), (8, 0, False)):
        Duty.objects.create(
            name="sweep",
            ran_by="worker",
            found=found,
            began_at=days_ago(days),
            ended_at=days_ago(days) if ended else None,
        )

    assert forget() == {"quiet duties": 1}


def test_ended_workers_go_when_nobody_refers_to_them():
    for holds in (True, False):
        dead = Worker.objects.create(host="h", pid=1, ended_why="died", ended_at=days_ago(31))
        if holds:
            start("three")
            Workflow.objects.update(status="running", wake_at=None, worker=dead)
    Worker.objects.create(host="h", pid=1, ended_why="died", ended_at=days_ago(2))

    assert forget() == {"workers": 1}


def test_the_duty_runs():
    finished("three", 31)

    assert duties.run("retention", "worker").note == {"workflows": 1}

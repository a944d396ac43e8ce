"""The seeds' answers, for every state a workflow can be in."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from recovery.checking import check, check_of
from tests.recovery.world import ago, dead_worker, done, live_worker, opened, pended, put, running, silent_worker
from workflows.models import Policy, Worker, Workflow

pytestmark = pytest.mark.django_db


def test_a_workflow_that_is_not_there():
    """S4-078, S4-088."""
    found = check(uuid4())

    assert (found.scheduled, found.reason) == (False, "no_job")


@pytest.mark.parametrize(("status", "manual"), [("completed", False), ("cancelled", False), ("failed", True)])
def test_what_has_ended(status, manual):
    """S4-079, S4-089."""
    found = check(put(Workflow(name="three", status=status, finished_at=ago(1))).pk)

    assert (found.scheduled, found.reason, found.status) == (False, "already_terminal", status)
    assert found.requires_manual_intervention is manual


@pytest.mark.parametrize("worker", [dead_worker, silent_worker])
def test_held_by_a_dead_worker(worker):
    """S4-036, S4-070, S4-073, S4-074, S4-090, S4-092, C10: reason, staleness and status in one answer."""
    found = check(running(worker(60)).pk)

    assert (found.scheduled, found.reason, found.status) == (True, "stale_running", "running")
    assert found.stale_for == pytest.approx(60, abs=5)
    assert not found.requires_manual_intervention


def test_held_by_a_live_worker_however_long():
    """C2: an honest long step is not stale."""
    found = check(running(live_worker(), opened("slow"), running_at=ago(86_400)).pk)

    assert (found.scheduled, found.reason) == (False, "not_needed")
    assert "host-1:4711 is alive" in found.why


def test_a_worker_whose_lock_is_free_is_not_alive():
    worker = Worker(host="h", pid=1, heartbeat_at=ago(1))

    assert check_of(Workflow(status="running"), worker, [], timezone.now(), locked=False).reason == "stale_running"


@pytest.mark.parametrize(("silence", "reason"), [(29.9, "not_needed"), (30, "stale_running")])
def test_the_threshold_itself_is_stale(silence, reason):
    """S0-032, C1: always >=."""
    now = timezone.now()
    worker = Worker(host="h", pid=1, heartbeat_at=now - timedelta(seconds=silence))

    assert check_of(Workflow(status="running"), worker, [], now).reason == reason


def test_at_the_maximum():
    """S4-080, S4-082, S4-091, C7."""
    found = check(running(dead_worker(), recovery_attempts=3).pk)

    assert (found.scheduled, found.reason) == (False, "max_attempts_exceeded")
    assert found.requires_manual_intervention


def test_an_orphan_that_waits_for_its_alarm():
    """S4-075, S4-093, S1-017."""
    found = check(running(None, wake_at=timezone.now() + timedelta(seconds=30), recovery_attempts=1).pk)

    assert (found.scheduled, found.reason) == (True, "orphaned_alarm")
    assert "recovery 2 of 3 is due at" in found.why


@pytest.mark.parametrize(("wake_at", "reason", "scheduled"), [(-1, "pending_resume", True), (60, "not_needed", False)])
def test_a_sleeper_before_and_after_its_time(wake_at, reason, scheduled):
    """S4-076, C11: before it, nothing runs."""
    found = check(put(Workflow(name="naps", status="paused", pause_reason="sleep", wake_at=ago(-wake_at))).pk)

    assert (found.scheduled, found.reason) == (scheduled, reason)


def test_what_waits_for_a_person_needs_no_recovery():
    """S4-077, S4-094."""
    workflow = Workflow(name="review", status="paused", pause_reason="pend", basket="fraud-review")
    found = check(put(workflow, pended("fraud-review")).pk)

    assert (found.reason, found.why) == ("not_needed", "it waits in fraud-review; resume it")
    assert not found.requires_manual_intervention


def test_held_for_review_needs_a_person():
    """C32, C40."""
    workflow = Workflow(name="review", status="paused", pause_reason="pend", basket="crash_review")
    found = check(put(workflow, pended("crash_review", kind="step", name="pay")).pk)

    assert found.reason == "held_for_review"
    assert found.requires_manual_intervention


def test_an_uncertain_payment_is_for_a_person_even_before_it_is_held():
    """C40: uncertain delivery."""
    assert check(running(dead_worker(), opened("pay", on_crash="hold")).pk).requires_manual_intervention


def test_a_definition_that_a_deploy_removed():
    """S0-052, C8, S3-122."""
    found = check(running(None, name="gone").pk)

    assert (found.scheduled, found.reason) == (False, "definition_missing")
    assert "gone version 1" in found.why


def test_a_definition_that_only_a_worker_has():
    worker = live_worker()
    worker.knows = {"elsewhere": [2, "abc"]}
    worker.save()

    assert check(running(None, name="elsewhere", version=2).pk).reason == "orphaned_alarm"
    assert check(running(None, name="elsewhere", version=3).pk).reason == "definition_missing"


def test_blocked_says_by_what():
    workflow = Workflow(
        name="three", status="paused", pause_reason="blocked", wake_at=ago(1), error={"message": "s1 became s9"}
    )
    found = check(put(workflow).pk)

    assert (found.reason, found.requires_manual_intervention) == ("blocked", True)
    assert "s1 became s9" in found.why


def test_a_document_that_cannot_be_read():
    """S3-118, S3-120: cannot be repaired."""
    found = check(running(dead_worker(), done("s1", 1)).pk)

    assert (found.scheduled, found.reason) == (False, "corrupt_state")
    assert "cannot be repaired: step 0 of path . is missing" in found.why
    assert found.requires_manual_intervention


def test_observing_schedules_nothing():
    """S4-120, C29."""
    Policy.objects.create(name="three", mode="observe")

    found = check(running(dead_worker()).pk)

    assert (found.scheduled, found.reason) == (False, "stale_running")
    assert "the mode is observe" in found.why

"""A death in each place where the seeds lost a workflow."""

import os
import signal
from collections import Counter
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from tests.recovery.dead import hold
from workflows import start
from workflows.models import Event, Step, Worker, Workflow

from . import flows  # noqa: F401
from .conftest import until
from .test_database_away import restart
from .test_killed import all_ended

pytestmark = pytest.mark.django_db(transaction=True)

GATE = 4711
GATED = "CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock_shared(%s); RETURN NEW; END $$"
STUCK = "SELECT a.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted AND l.objid = %s AND l.locktype = 'advisory'"


@contextmanager
def gate(event):
    """Whoever writes this event stands still in the middle of its transaction until the block ends."""
    with connection.cursor() as cursor:
        cursor.execute(GATED, [GATE])
        cursor.execute(
            f"CREATE TRIGGER gate BEFORE INSERT ON rekindle_event FOR EACH ROW WHEN (NEW.type = '{event}') EXECUTE FUNCTION gate()"
        )
        cursor.execute("SELECT pg_advisory_lock(%s)", [GATE])
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [GATE])
            until(lambda: not stuck(), "everybody is through")
            cursor.execute("DROP FUNCTION gate CASCADE")


def stuck():
    with connection.cursor() as cursor:
        cursor.execute(STUCK, [GATE])
        return [pid for (pid,) in cursor.fetchall()]


def kill_all(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def cut(pids):
    with connection.cursor() as cursor:
        for pid in pids:
            cursor.execute("SELECT pg_terminate_backend(%s)", [pid])
    until(lambda: not stuck(), "its transaction is undone")


@pytest.mark.parametrize(
    ("event", "heard"),
    [
        ("workflow.paused", False),
        ("workflow.paused", True),
        ("workflow.completed", False),
        ("workflow.failed", True),
        ("parallel.joined", False),
    ],
)
def test_killed_inside_a_transaction_it_is_wholly_before_or_wholly_after(workers, ledger, event, heard):
    """C12, C20, C33, S1-002, S1-014, S1-020, S3-003, S3-115; I6: status, alarm, result and event are one commit."""
    process = workers.start()
    with gate(event):
        name = "branches" if event == "parallel.joined" else "brief"
        workflow = start(name, {"slow": []} if name == "branches" else {"fails": event == "workflow.failed"})
        until(stuck, "the worker stands in the middle of its commit")
        kill_all(process)
        workflow.refresh_from_db()
        assert (workflow.status, workflow.wake_at) == ("running", None)
        if not heard:
            cut(stuck())

    if heard:  # the server finishes what nobody waits for any more
        until(lambda: Event.objects.filter(type=event).exists(), "it was committed")
    workers.start()
    until(all_ended, "the workflow has ended")
    workflow.refresh_from_db()
    assert workflow.status == ("failed" if event == "workflow.failed" else "completed")
    assert Event.objects.filter(type=event).count() == 1
    assert set(Counter(ledger()).values()) == {1}


@pytest.mark.parametrize("committed", [False, True])
def test_killed_between_the_end_of_a_step_and_its_commit_it_is_repeated_or_it_is_done(workers, ledger, committed):
    """I2, S3-115; faults: between a step's end and its commit, the step again; committed, but nobody heard it: done."""
    process = workers.start()
    with gate("step.completed"):
        workflow = start("three", {"tag": "w"})
        until(stuck, "the first step has ended and is not stored")
        kill_all(process)
        if not committed:
            cut(stuck())

    if committed:
        until(lambda: Step.objects.filter(status="done").exists(), "it was committed")
    workers.start()
    until(all_ended, "the workflow has ended")
    workflow.refresh_from_db()
    assert (workflow.status, workflow.output) == ("completed", ["w:0", "w:1", "w:2"])
    assert ledger() == ["w:0", "w:1", "w:2"] if committed else ["w:0", "w:0", "w:1", "w:2"]


def test_what_was_stored_is_what_is_stored_after_everything_was_killed(workers, ledger):
    """S0-011, S1-006; every column of what was held, asleep and queued, though the database dies as well."""
    process = workers.start(concurrency=1)
    start("naps", {"seconds": 600, "tag": "asleep"})
    until(lambda: Workflow.objects.filter(status="paused").exists(), "one sleeps")
    start("slow", {"tag": "held", "seconds": 60, "steps": 1})
    until(lambda: Step.objects.filter(status="open").exists(), "one is in a step")
    start("three", {"tag": "queued"})
    before = everything()

    kill_all(process)
    restart(signal.SIGQUIT)

    assert everything() == before
    statuses = [workflow["status"] for workflow in before[0]]
    assert (statuses, ledger()) == (["paused", "running", "queued"], ["asleep:before", "held:0:begun"])


def everything():
    return [list(model.objects.order_by("pk").values()) for model in (Workflow, Step, Event)]


def test_an_alarm_on_a_running_workflow_cannot_be_stored():
    """S1-014, S1-015, S1-017, S1-018, C11..C13: nor can a running one that nobody holds and no alarm wakes."""
    held = Workflow.objects.filter(pk=hold().pk)

    for wrong in (
        {"wake_at": Now()},  # alarm set, still running
        {"worker": None},  # running, no alarm
        {"worker": None, "status": "paused", "pause_reason": "sleep"},  # paused, no alarm
        {"worker": None, "status": "queued"},
        {"worker": None, "status": "pending"},
        {"status": "completed", "finished_at": Now()},  # ended, still held
    ):
        with pytest.raises(IntegrityError, match="alive_means_someone_will_wake_it"), transaction.atomic():
            held.update(**wrong)


def test_what_was_queued_when_its_worker_died_starts_as_if_nothing_had_happened(workers, ledger):
    """S0-014, S0-041, S1-022, S1-026."""
    process = workers.start(concurrency=1)
    start("slow", {"tag": "first", "seconds": 60, "steps": 1})
    until(lambda: "first:0:begun" in ledger(), "the only slot is taken")
    queued = start("three", {"tag": "second"})

    kill_all(process)

    queued.refresh_from_db()
    assert (queued.status, queued.worker, queued.wake_at is not None) == ("queued", None, True)
    workers.start(concurrency=2)
    until(lambda: Workflow.objects.get(pk=queued.pk).is_finished, "it has run")
    queued.refresh_from_db()
    assert (queued.status, queued.recoveries) == ("completed", 0)


@pytest.mark.parametrize("down_for", ["less than the sleep", "a day"])
def test_a_sleeper_wakes_at_its_own_time_after_everything_was_killed(workers, ledger, down_for):
    """S0-015, S0-086, S0-088, S1-021, S1-023..S1-027, C11; I8: the deadline is written once and never recomputed."""
    process = workers.start()
    workflow = start("naps", {"seconds": 4, "tag": "w"})
    until(lambda: Workflow.objects.filter(status="paused").exists(), "it sleeps")
    kill_all(process)
    if down_for == "a day":
        for rows in (Workflow.objects, Step.objects.filter(kind="sleep")):
            rows.update(wake_at=F("wake_at") - timedelta(days=1))
    deadline = Workflow.objects.get().wake_at

    workers.start()

    until(all_ended, "it has ended")
    workflow.refresh_from_db()
    assert (workflow.status, workflow.recoveries) == ("completed", 0)
    assert ledger() == ["w:before", "w:after"]
    sleep = Step.objects.get(kind="sleep")
    assert sleep.wake_at == deadline
    assert sleep.ended_at >= deadline


@pytest.mark.parametrize(
    ("slow", "after", "again"),
    [(["b"], 0, {"b"}), (["a", "b", "c"], 0, {"a", "b", "c"}), ([], 60, {"after"})],
    ids=["one of three", "all three", "after the join"],
)
def test_only_the_branches_that_were_open_run_again(workers, ledger, slow, after, again):
    """S3-052, S3-053, S3-116, C33, C34."""
    workers.start()
    workflow = start("branches", {"slow": slow, "after": after})
    ended = {f"{name}:ended" for name in {"a", "b", "c"} - set(slow)}
    begun = {f"{name}:begun" for name in again}
    until(lambda: ended | begun <= set(ledger()), "it is where it shall die")
    until(lambda: Step.objects.filter(kind="step", status="done").count() == len(ended), "the others are recorded")

    os.kill(Worker.objects.get(ended_at=None).pid, signal.SIGKILL)

    until(all_ended, "it has ended")
    workflow.refresh_from_db()
    assert workflow.output == ["a:ended", "b:ended", "c:ended", "after:ended"]
    counted = Counter(ledger())
    assert {line for line, count in counted.items() if count > 1} == begun
    assert max(counted.values()) == 2

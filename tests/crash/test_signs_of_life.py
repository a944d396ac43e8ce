"""What may and what may not be taken for life: forked children, wrong clocks, frozen transactions, workers that do not look."""

import os
import signal
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.db import connection

from recovery.models import Recovery
from recovery.sweep import sweep_now
from workflows import start, start_many
from workflows.connections import SESSION, connect_engine
from workflows.liveness import LOCK, LOCKED, Liveness
from workflows.models import Event, Step, Worker, Workflow

from . import flows  # noqa: F401
from .conftest import FAST, until
from .test_killed import all_ended, kill

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_child_that_outlives_its_worker_does_not_keep_it_alive(workers, ledger):
    """Faults: a step body forks a child: it must not hold on to the lock. Found by its lock, not by its silence."""
    workers.start(REKINDLE_STALE_AFTER="600")
    workflow = start("forks")
    until(lambda: any(line.startswith("child:") for line in ledger()), "it has forked")
    child = int(next(line for line in ledger() if line.startswith("child:")).removeprefix("child:"))
    try:
        kill(Worker.objects.get(ended_at=None))

        until(all_ended, "it was taken over")
        os.kill(child, 0)
    finally:
        os.kill(child, signal.SIGKILL)
    workflow.refresh_from_db()
    assert (workflow.status, workflow.output) == ("completed", "done")
    assert Recovery.objects.get().finding == "dead_worker"


def test_a_lock_that_somebody_else_kept_for_a_while_is_taken_again(monkeypatch):
    """Design 5.2: a half-dead session of its own may hold it until the server notices; nobody lives on without his lock."""
    monkeypatch.setitem(SESSION, "lock_timeout", "200ms")
    liveness = Liveness(1, "{}")
    take, refused = liveness._take_lock, threading.Event()

    def try_to_take():
        try:
            take()
        except psycopg.Error:
            refused.set()
            raise

    monkeypatch.setattr(liveness, "_take_lock", try_to_take)
    liveness.start()
    other = connect_engine("other")
    with ThreadPoolExecutor(1) as thread:
        waits = thread.submit(other.execute, LOCK, [liveness.worker])
        until(lambda: waiting_for_a_lock(), "the other session stands in line")
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [liveness._lock.info.backend_pid])
        waits.result(30)
    assert refused.wait(30)

    other.close()

    until(lambda: holds_its_lock(liveness.worker), "it has its lock again")
    liveness.end("stopped")
    liveness._beats.close()


def waiting_for_a_lock():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return cursor.fetchone()[0]


def holds_its_lock(number):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {LOCKED.format(worker=number)}")
        return cursor.fetchone()[0]


def test_a_replacement_knows_when_the_one_before_it_died(workers, ledger):
    """S0-058: it has written nothing for long and beats seldom, but its parent saw its end."""
    quiet = {"REKINDLE_HEARTBEAT": "600", "REKINDLE_STALE_AFTER": "3600", "REKINDLE_RESTART_GRACE": "0"}
    workers.start(**quiet)
    workflow = start("slow", {"tag": "w", "seconds": 600, "steps": 1})
    until(lambda: Step.objects.filter(status="open").exists(), "the body is under way")

    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        before = cursor.fetchone()[0]
    kill(Worker.objects.get(ended_at=None))

    until(lambda: Recovery.objects.exists(), "it was found")
    recovery = Recovery.objects.get(workflow_id=workflow.pk)
    assert before < recovery.last_seen_at < recovery.detected_at
    assert recovery.detected_by in ("start-up", "worker")


def test_wrong_clocks_and_one_name_for_all_hosts_have_no_effect(workers, ledger):
    """C16; faults: app clocks wrong by 10 minutes, either way."""
    modules = {"REKINDLE_MODULES": f"tests.crash.wrong_clock,{FAST['REKINDLE_MODULES']}"}
    workers.start(**modules, CLOCK_OFF="600")
    workers.start(**modules, CLOCK_OFF="-600")
    start_many("naps", [{"tag": f"n{n}", "seconds": 1} for n in range(6)], keys=[f"n{n}" for n in range(6)])
    start_many("slow", [{"tag": f"s{n}", "seconds": 0.4} for n in range(6)], keys=[f"s{n}" for n in range(6)])
    until(lambda: Workflow.objects.filter(worker__isnull=False).exists(), "they are at work")
    doomed = Worker.objects.filter(ended_at=None, held__isnull=False).distinct()[0]

    kill(doomed)

    until(all_ended, "all have ended")
    assert Workflow.objects.filter(status="completed").count() == 12
    assert set(Worker.objects.exclude(ended_at=None).values_list("pk", flat=True)) == {doomed.pk}
    assert set(Worker.objects.values_list("host", flat=True)) == {"the-same-for-all"}
    assert all(step.ended_at >= step.wake_at for step in Step.objects.filter(kind="sleep"))
    assert ran_twice(ledger) <= set(Recovery.objects.values_list("workflow_key", flat=True))


def ran_twice(ledger):
    """The tags of whatever was done more than once: only what was open when its worker died may be."""
    return {line.partition(":")[0] for line, count in Counter(ledger()).items() if count > 1}


@pytest.fixture
def effects():
    """A table of the host's own, without any constraint that would keep a second effect out."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE crash_effects (workflow_id uuid)")
    yield lambda: rows_of("crash_effects")
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE crash_effects")


def rows_of(table):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        return cursor.fetchone()[0]


def test_a_worker_frozen_inside_an_open_transaction_cannot_commit_it_afterwards(workers, ledger, effects):
    """C2, I3; faults: SIGSTOP inside an open transaction; the atomic step takes effect exactly once."""
    workers.start()
    frozen = Worker.objects.get()
    workflow = start("books")
    until(lambda: "booked" in ledger(), "its transaction is open")
    os.kill(frozen.pid, signal.SIGSTOP)
    try:
        workers.start()
        until(all_ended, "another worker has done it")
    finally:
        os.kill(frozen.pid, signal.SIGCONT)

    until(lambda: Event.objects.filter(type="workflow.zombie_refused").exists(), "the late one was refused")
    workflow.refresh_from_db()
    assert workflow.status == "completed"
    assert ledger() == ["booked", "booked"]
    until(lambda: not idle_in_transaction(), "no transaction is left open")
    assert effects() == 1


def idle_in_transaction():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'"
        )
        return cursor.fetchone()[0]


def test_where_workers_do_not_look_the_scheduled_task_brings_the_work_to_another(workers, ledger):
    """S0-093, S0-094, C29: REKINDLE_SWEEP_EVERY=0 and no start-up look."""
    off = {"REKINDLE_SWEEP_EVERY": "0", "REKINDLE_STARTUP_SWEEP": "0"}
    first = workers.start(**off)
    held = start("slow", {"tag": "w", "seconds": 60, "steps": 1})
    until(lambda: "w:0:begun" in ledger(), "it is being run")
    os.killpg(first.pid, signal.SIGKILL)
    second = workers.start(**off)
    start("three", {"tag": "other"})
    until(lambda: "other:2" in ledger(), "the second one works")
    held.refresh_from_db()
    assert held.worker is not None

    until(lambda: sweep_now("scheduled task")["released"], "the scheduled task has found it")

    until(lambda: ledger().count("w:0:begun") == 2, "the second worker has it")
    assert second.poll() is None
    assert Recovery.objects.get().detected_by == "scheduled task"
    assert Worker.objects.get(ended_at=None).held.get() == held


def test_with_nothing_set_at_all_a_killed_workers_work_goes_on_elsewhere(workers, ledger):
    """S0-001, S0-005, S0-007, S1-048: no interval shortened."""
    for name in FAST:
        if name != "REKINDLE_MODULES":
            del workers.environment[name]
    workers.start(concurrency=16)
    workers.start(concurrency=16)
    tags = [f"w{n}" for n in range(40)]  # more than one of them can do before the other looks
    start_many("slow", [{"tag": tag, "seconds": 0.5, "steps": 2} for tag in tags], keys=tags)
    until(lambda: Worker.objects.filter(held__isnull=False).distinct().count() == 2, "both are at work")
    doomed = Worker.objects.filter(held__isnull=False)[0]

    kill(doomed)

    until(all_ended, "all have ended", seconds=90)
    assert Workflow.objects.filter(status="completed").count() == 40
    assert ran_twice(ledger) <= set(Recovery.objects.values_list("workflow_key", flat=True))
    assert Worker.objects.get(pk=doomed.pk).ended_why == "died"
    assert Workflow.objects.filter(recoveries=1).exists()

"""Bodies that do not come back, hang with the interpreter, exit, or eat the memory: bounded, named, others unaffected."""

import os
import resource
import signal

import pytest
from django.db import connection

from workflows import start, start_many, verbs
from workflows.models import Event, Policy, Worker, Workflow

from .conftest import until

pytestmark = pytest.mark.django_db(transaction=True)

FLOWS = {"REKINDLE_MODULES": "tests.workflows.flows,tests.workflows.hanging"}


@pytest.fixture(autouse=True)
def known_here():
    """To start them from this process."""
    from ..workflows import hanging  # noqa: F401


def ended(workflow):
    workflow.refresh_from_db()
    return workflow.is_finished


def alive():
    return Worker.objects.get(ended_at=None)


def test_a_hung_body_is_given_up_and_another_run_takes_over(workers, ledger):
    """C57, S0-062, S1-043: recover. Nobody died, so no other look finds it. The slot it costs is counted, and the queue moves on."""
    Policy.objects.create(name="hangs", run_limit=1.5, on_run_limit="recover")
    workers.start(concurrency=4, **FLOWS)
    workflow = start("hangs", {"tag": "h"})

    until(lambda: ended(workflow), "the second run has finished it")

    assert (workflow.status, workflow.recoveries, workflow.recovery_attempts) == ("completed", 1, 0)
    assert ledger() == ["h:begun", "h:begun", "h:ended"]
    fences = list(Event.objects.filter(workflow=workflow).order_by("seq").values_list("fence", flat=True))
    assert fences == sorted(fences)
    until(lambda: Worker.objects.get().lost == 1, "the worker says that it lost a slot")
    start_many("three", [{"tag": f"w{n}"} for n in range(20)])
    until(lambda: not Workflow.objects.filter(finished_at=None).exists(), "the others have ended")
    assert Worker.objects.get().ended_at is None


def test_a_body_that_always_hangs_is_failed_by_its_limit(workers, ledger):
    """C57, S1-043: fail."""
    Policy.objects.create(name="hangs", run_limit=1.5, on_run_limit="fail")
    workers.start(concurrency=4, **FLOWS)
    workflow = start("hangs", {"tag": "h", "times": 99})

    until(lambda: ended(workflow), "it was failed")

    assert workflow.error["message"] == "It was held for longer than its run limit of 1.5 s in step sticks."


def test_what_an_operator_failed_while_it_hangs_gives_its_slot_back_as_lost(workers, ledger):
    workers.start(concurrency=4, **FLOWS)
    workflow = start("hangs", {"tag": "h"})
    until(lambda: workflow.steps.filter(status="open").exists(), "it hangs, and its step is known")

    verbs.fail(workflow.pk, by="ada", reason="enough")

    until(lambda: alive().lost == 1, "the worker says that it lost a slot")
    verbs.revive(workflow.pk, by="ada", reason="again")
    until(lambda: ended(workflow), "its second run, in the same process, has finished it")
    assert (workflow.status, Worker.objects.count()) == ("completed", 1)
    assert not Event.objects.filter(type="workflow.zombie_refused").exists()


def test_a_process_whose_last_slot_is_lost_is_replaced(workers, ledger):
    """Design, retry: the timed-out try counts, and the new process makes the next one."""
    workers.start(concurrency=1, **FLOWS)
    workflow = start("times_out", {"tag": "t"})

    until(lambda: ended(workflow), "the second try has succeeded")

    assert (workflow.status, workflow.recoveries) == ("completed", 0)
    assert ledger() == ["t:begun", "t:begun", "t:ended"]
    first = Worker.objects.order_by("pk")[0]
    assert first.ended_why == "lost slots"
    failed = Event.objects.get(workflow=workflow, type="step.failed")
    assert (failed.data["type"], failed.data["will_retry"]) == ("StepTimedOut", True)


def test_a_process_that_lost_half_its_slots_for_good_hands_back_the_rest(workers, ledger):
    """Design: it is replaced; nobody pays an attempt for it."""
    workers.start(concurrency=4, **FLOWS, REKINDLE_HANG_AFTER="3", REKINDLE_GRACE="0.5")
    innocent = start("slow", {"tag": "i", "seconds": 2, "steps": 5})
    stuck = start_many("times_out", [{"tag": "a"}, {"tag": "b"}])

    until(lambda: Worker.objects.filter(ended_why="lost slots").exists(), "the process gave up")
    until(lambda: ended(innocent), "the innocent has ended")

    assert (innocent.status, innocent.recoveries) == ("completed", 0)
    assert Event.objects.filter(workflow=innocent, type="workflow.handed_back").exists()
    until(lambda: not Workflow.objects.filter(finished_at=None).exists(), "the stuck ones have ended")
    assert Workflow.objects.filter(pk__in=stuck, status="completed", recoveries=0).count() == 2


def test_a_body_that_hangs_with_the_interpreter_is_killed_and_given_up_by_name(workers, ledger):
    """Faults: hangs in C. I4, I11: its supervisor kills the process, the others lose time and nothing else."""
    workers.start(concurrency=4, **FLOWS, REKINDLE_HANG_AFTER="3")
    workflow = start("holds_the_gil", {"tag": "g"})
    Workflow.objects.filter(pk=workflow.pk).update(max_recovery_attempts=1)
    until(lambda: "g:begun" in ledger(), "it has begun")
    start_many("three", [{"tag": f"w{n}"} for n in range(5)])

    until(lambda: ended(workflow), "it was given up")
    until(lambda: not Workflow.objects.filter(finished_at=None).exists(), "the others have ended")

    assert workflow.error["message"] == "Workflow recovery failed after 1 attempts"
    assert workflow.error["open"] == ["regex"]
    assert ledger().count("g:begun") == 2
    assert Workflow.objects.filter(name="three", status="completed").count() == 5


def test_a_body_that_exits_fails_its_workflow_and_not_its_worker(workers, ledger):
    """Faults: a step that exits the process, by the ways that can be caught."""
    workers.start(**FLOWS)
    ways = [
        {"how": how, "outside": outside}
        for how in ("sys.exit", "SystemExit", "KeyboardInterrupt", "MemoryError")
        for outside in (False, True)
    ]

    ids = start_many("leaves", ways)

    until(lambda: not Workflow.objects.filter(finished_at=None).exists(), "all have ended")
    assert Workflow.objects.filter(pk__in=ids, status="failed", recoveries=0).count() == len(ways)
    for workflow in Workflow.objects.filter(pk__in=ids, input__outside=False):
        assert workflow.error["message"].startswith("step leaves failed: ")
    assert Worker.objects.get().ended_at is None


def test_a_body_that_allocates_without_end_fails_by_name(workers, ledger):
    """Faults: allocates without end, where the host has set a limit. Without one the kernel kills, as in test_killed."""
    workers.start(**FLOWS)
    start_many("slow", [{"tag": f"w{n}", "seconds": 0.2} for n in range(3)])
    until(lambda: len(ledger()) > 3, "its threads are there")
    pid = alive().pid
    with open(f"/proc/{pid}/statm") as pages:
        now = int(pages.read().split()[0]) * resource.getpagesize()
    resource.prlimit(pid, resource.RLIMIT_AS, (now + (512 << 20),) * 2)

    workflow = start("allocates")

    until(lambda: ended(workflow), "it has failed")
    assert workflow.error["message"].startswith("step allocates failed: MemoryError")
    until(lambda: not Workflow.objects.filter(finished_at=None).exists(), "the others have ended")
    assert Workflow.objects.filter(name="slow", status="completed", recoveries=0).count() == 3
    assert Worker.objects.get().ended_at is None


@pytest.fixture
def stock():
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE stock (pieces int); INSERT INTO stock VALUES (10)")
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE stock")


def test_a_worker_frozen_inside_a_transaction_does_not_keep_its_locks(workers, ledger, stock):
    """Faults: SIGSTOP inside an open transaction. It ends by time-out, the woken worker is refused, the effect is one."""
    workers.start(**FLOWS, REKINDLE_BODY_IDLE_IN_TRANSACTION="6")
    frozen = alive()
    workflow = start("takes_stock", {"tag": "s"})
    until(lambda: "s:1:locked" in ledger(), "its transaction holds the row")
    os.kill(frozen.pid, signal.SIGSTOP)
    try:
        workers.start(**FLOWS)
        until(lambda: ended(workflow), "another worker got the lock and finished it")
    finally:
        os.kill(frozen.pid, signal.SIGCONT)

    until(lambda: Event.objects.filter(type="workflow.zombie_refused").exists(), "the late write was refused")
    until(lambda: Worker.objects.filter(ended_at=None, pid=frozen.pid).count() == 0, "the late worker has gone")
    workflow.refresh_from_db()
    assert (workflow.status, workflow.output) == ("completed", 9)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pieces FROM stock")
        assert cursor.fetchone() == (9,)
    assert Event.objects.filter(type="workflow.zombie_refused").count() == 1
    fences = list(Event.objects.filter(workflow=workflow).order_by("seq").values_list("fence", flat=True))
    assert fences == sorted(fences)


def test_a_transaction_that_idles_for_too_long_is_a_failed_try_and_not_an_outage(workers, ledger):
    """I4: the database ends it each time, so it must not be tried for ever."""
    workers.start(**FLOWS, REKINDLE_BODY_IDLE_IN_TRANSACTION="0.5")

    workflow = start("idles")

    until(lambda: ended(workflow), "it has failed")
    assert (workflow.status, ledger()) == ("failed", ["idles", "idles"])
    assert "idle-in-transaction" in workflow.error["message"]

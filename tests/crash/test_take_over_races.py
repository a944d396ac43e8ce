"""Taking over while something else happens: another sweep, a death in the sweep, a claim that comes too late."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connection, connections

from recovery.models import Recovery
from recovery.sweep import sweep_now
from tests.recovery.dead import claimer, die, hold, worker
from workflows import start_many
from workflows.claiming import Claimer
from workflows.connections import connect_engine
from workflows.definitions import discover
from workflows.journal import GroupJournal
from workflows.models import Event, Worker, Workflow

from .conftest import FAST, ROOT, until

pytestmark = pytest.mark.django_db(transaction=True)


def held_by_the_dead(count):
    """So many workflows in the hands of a worker that has ended."""
    ids = start_many("three", [{"tag": str(n)} for n in range(count)])
    holder = worker()
    hands = Claimer(
        connect_engine("dead", by_key=True), holder.pk, GroupJournal(holder.pk), {"three": discover()["three"]}
    )
    assert len(hands.claim(count)) == count
    hands.connection.close()
    die(holder)
    return ids


def in_threads(many, act):
    def one(_):
        try:
            together.wait()
            return act()
        finally:
            connections.close_all()

    together = threading.Barrier(many)
    with ThreadPoolExecutor(many) as threads:
        return list(threads.map(one, range(many)))


def test_three_sweeps_at_once_take_each_orphan_once(monkeypatch):
    """S0-006, S2-059, S2-084; faults: two sweeps at once, one winner each."""
    monkeypatch.setattr("workflows.takeover.BATCH", 50)
    monkeypatch.setattr("recovery.sweep.BATCH", 50)
    ids = held_by_the_dead(400)

    done = in_threads(3, lambda: sweep_now("scheduled task"))

    done.append(sweep_now("scheduled task"))  # what each left to the others
    assert sum(one["released"] for one in done) == 400
    assert Event.objects.filter(type="workflow.orphaned").count() == 400
    assert Recovery.objects.filter(workflow_id__in=ids).count() == 400
    assert set(Workflow.objects.values_list("fence", flat=True)) == {2}


def test_three_schedulers_racing_claim_without_overlap():
    """S2-009, S2-040, S2-059, S2-060, S2-061: A holds 1, 2, 3; B skips to 4, 5, 6; a second claim changes no row."""
    start_many("three", [{"tag": str(n)} for n in range(300)])

    taken = in_threads(3, lambda: [held.id for held in claimer().claim(100)])

    assert [len(ids) for ids in taken] == [100, 100, 100]
    assert len(set().union(*taken)) == 300
    assert claimer().claim(100) == []
    assert set(Workflow.objects.values_list("fence", flat=True)) == {1}


DIE_IN_THE_SWEEP = """
import os, django; django.setup()
from workflows import takeover
from recovery.sweep import sweep_now
takeover.witnesses.append(lambda *_: os._exit(9))  # released, recorded, not committed
sweep_now("scheduled task")
"""


def test_a_sweep_that_is_killed_in_the_middle_has_done_nothing_and_the_next_does_it(workers):
    """S0-006; faults: in recovery itself; the row, its record and its event are one commit."""
    held_by_the_dead(5)

    died = subprocess.run([sys.executable, "-c", DIE_IN_THE_SWEEP], env=workers.environment, cwd=ROOT)

    assert died.returncode == 9
    assert Workflow.objects.filter(worker__isnull=False, fence=1).count() == 5
    assert not Recovery.objects.exists()
    assert not Event.objects.filter(type="workflow.orphaned").exists()
    assert sweep_now("scheduled task")["released"] == 5
    assert Recovery.objects.count() == 5


def test_a_sweep_that_is_frozen_in_the_middle_does_not_keep_the_others_from_it(workers, ledger):
    """I7; faults: SIGSTOP inside an open transaction: it ends by time-out, and somebody else takes over."""
    held_by_the_dead(5)
    modules = f"tests.crash.freezes,{FAST['REKINDLE_MODULES']}"
    workers.start(REKINDLE_MODULES=modules)
    frozen = Worker.objects.get(ended_at=None)
    until(lambda: Path(f"/proc/{frozen.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T", "it is frozen")
    assert Workflow.objects.filter(worker__isnull=False).count() == 5

    workers.start()

    until(lambda: not Workflow.objects.filter(finished_at=None).exists(), "somebody else has done it")
    os.kill(frozen.pid, signal.SIGCONT)
    assert Recovery.objects.count() == 5
    assert Workflow.objects.filter(status="completed", recoveries=1).count() == 5


def test_a_claim_that_commits_after_its_worker_was_found_dead_is_found_too(settings):
    """Design 4, the claim: the sweep waits for it under the worker's row lock, and takes what it took."""
    settings.REKINDLE = settings.REKINDLE | {"DEATH_GAP": 0.01}
    start_many("three", [{"tag": str(n)} for n in range(3)])
    doomed = worker()
    late = connect_engine("late", by_key=True)
    late.autocommit = False
    hands = Claimer(late, doomed.pk, GroupJournal(doomed.pk), {"three": discover()["three"]})
    assert len(hands.claim(3)) == 3  # not committed; its process is dead, as its lock says

    with ThreadPoolExecutor(1) as thread:
        sweeping = thread.submit(lambda: (sweep_now("worker"), connections.close_all())[0])
        until(someone_waits_for_a_row, "the sweep stands before the worker's row")
        assert not sweeping.done()
        late.commit()
        done = sweeping.result(30)

    late.close()
    assert done["released"] == 3
    assert Workflow.objects.filter(worker=None, status="running").count() == 3


def test_who_was_declared_dead_claims_nothing_more():
    """Design 4, the claim: one that begins after the verdict takes no row."""
    start_many("three", [{"tag": "a"}])
    ended = worker()
    die(ended)
    hands = Claimer(connect_engine("late", by_key=True), ended.pk, GroupJournal(ended.pk), discover())

    assert hands.claim(10) == []

    hands.connection.close()
    assert Workflow.objects.get().status == "queued"


def test_two_recoveries_of_one_workflow_are_one():
    """S0-006: idempotent; a second sweep finds nothing, and its claim is the only one."""
    workflow = hold()
    die(workflow.worker)

    assert sweep_now("worker")["released"] == 1
    assert sweep_now("scheduled task")["found"] == 0
    assert Recovery.objects.filter(workflow_id=workflow.pk).count() == 1


def someone_waits_for_a_row():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype IN ('transactionid', 'tuple')")
        return cursor.fetchone()[0]


def test_a_worker_that_is_ended_twice_was_ended_once():
    doomed = worker()

    from workflows.takeover import end_worker

    assert in_threads(2, lambda: end_worker(doomed, "died")).count(True) == 1
    assert Worker.objects.get().ended_why == "died"

"""The scheduled tasks really do it: a real qcluster with no live worker, and real workers with no qcluster."""

import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django_q.models import Schedule

from recovery import duties
from recovery.duties import DUTIES
from recovery.models import Duty, Recovery
from tests.crash.conftest import ROOT, until
from workflows import start, start_many
from workflows.models import Event, Worker, Workflow

pytestmark = pytest.mark.django_db(transaction=True)

CLAIM_AND_DIE = """
import json, os, sys, django; django.setup()
from workflows.claiming import Claimer
from workflows.connections import connect_engine
from workflows.definitions import discover
from workflows.journal import GroupJournal
from workflows.liveness import Liveness
alive = Liveness(8, json.dumps({name: [one.version, one.fingerprint] for name, one in discover().items()}))
claimer = Claimer(connect_engine("doomed", by_key=True), alive.worker, GroupJournal(alive.worker), discover())
assert len(claimer.claim(100)) == int(sys.argv[1])
os.kill(os.getpid(), 9)
"""


def die_holding(workers, count):
    """A worker process that holds so many workflows and was killed. No other worker is alive."""
    done = subprocess.run([sys.executable, "-c", CLAIM_AND_DIE, str(count)], env=workers.environment, cwd=ROOT)
    assert done.returncode == -signal.SIGKILL


def all_ran(ran_by):
    return Duty.objects.filter(ran_by=ran_by, ended_at__isnull=False).values("name").distinct().count() == len(DUTIES)


def test_the_scheduled_task_alone_finds_the_dead_and_hands_their_work_back(workers, qcluster, ledger):
    """S0-006, S2-014, S2-048, S3-072; C17: no worker is alive; one that comes later only claims."""
    workers.environment["REKINDLE_RESTART_GRACE"] = "0"  # the test's own server may just have started
    start_many("three", [{"tag": f"w{n}"} for n in range(5)])
    die_holding(workers, 5)
    assert Workflow.objects.filter(worker__isnull=False).count() == 5

    qcluster()

    until(lambda: not Workflow.objects.filter(worker__isnull=False).exists(), "the work was handed back", 150)
    until(lambda: all_ran("scheduled task"), "every duty has run")
    assert Worker.objects.filter(ended_at=None).count() == 0
    assert Workflow.objects.filter(status="running", wake_at__isnull=False).count() == 5
    duty = Duty.objects.get(name="sweep", found__gt=0)
    assert (duty.ran_by, duty.found, duty.recovered, duty.failed) == ("scheduled task", 5, 5, 0)
    assert ledger() == []

    workers.start()
    until(lambda: Workflow.objects.filter(status="completed").count() == 5, "all have ended")
    assert sorted(ledger()) == sorted(f"w{n}:{m}" for n in range(5) for m in range(3))
    orphaned = Event.objects.filter(type="workflow.orphaned")
    assert {event.data["detected_by"] for event in orphaned} == {"scheduled task"}
    assert set(Recovery.objects.values_list("detected_by", flat=True)) == {"scheduled task"}
    assert Recovery.objects.count() == 5


def test_workers_that_do_not_look_out_get_the_work_through_the_scheduled_task(workers, qcluster, ledger):
    """S0-094: detection in workers is switched off, start-up look included."""
    blind = {"REKINDLE_SWEEP_EVERY": "3600", "REKINDLE_STARTUP_SWEEP": "0", "REKINDLE_RESTART_GRACE": "0"}
    workers.environment |= blind
    first, second = workers.start(), workers.start()
    start("slow", {"tag": "w", "seconds": 0.5})
    until(lambda: "w:1:begun" in ledger(), "its second step has begun")
    holder = Workflow.objects.get().worker
    os.killpg(first.pid if os.getpgid(holder.pid) == first.pid else second.pid, signal.SIGKILL)

    qcluster()

    until(lambda: Workflow.objects.get().status == "completed", "the other has finished it", 150)
    assert Recovery.objects.get().detected_by == "scheduled task"
    assert Worker.objects.get(pk=holder.pk).ended_at is not None


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "wedged"])
def test_with_the_cluster_gone_recovery_is_what_it_was(workers, qcluster, ledger, how):
    """Faults: qcluster killed or wedged. Workers find the dead themselves; nothing waits for the cluster."""
    workers.environment["REKINDLE_RESTART_GRACE"] = "0"  # the test's own server may just have started
    cluster = qcluster()
    until(lambda: all_ran("scheduled task"), "the cluster has run its duties")
    first, second = workers.start(), workers.start()
    start("slow", {"tag": "w", "seconds": 0.5})
    until(lambda: "w:1:begun" in ledger(), "its second step has begun")

    os.killpg(cluster.pid, how)
    holder = Workflow.objects.get().worker
    os.killpg(first.pid if os.getpgid(holder.pid) == first.pid else second.pid, signal.SIGKILL)

    until(lambda: Workflow.objects.get().status == "completed", "the other has finished it")
    assert Recovery.objects.get().detected_by == "worker"
    assert [ledger().count(f"w:{n}:ended") for n in range(3)] == [1, 1, 1]


def test_without_a_qcluster_a_worker_runs_every_duty(workers):
    """Losing qcluster delays nothing; the record says who stood in."""
    workers.start()

    until(lambda: all_ran("worker"), "a worker has run every duty")

    assert set(Duty.objects.values_list("ran_by", flat=True)) == {"worker"}
    assert Duty.objects.exclude(error="").count() == 0


def test_of_ten_workers_one_stands_in_for_each_duty(workers):
    workers.start(processes=10, concurrency=1)
    until(lambda: all_ran("worker"), "the duties have run")
    until(lambda: not Duty.objects.filter(ended_at=None).exists(), "all runs have ended")

    assert Duty.objects.count() == len(DUTIES)


def test_a_wedged_qcluster_is_stood_in_for_and_its_broken_schedules_are_put_right(workers, qcluster):
    """qcluster frozen: its last runs grow old, a worker takes over and repairs what is in the way."""
    cluster = qcluster()
    until(lambda: all_ran("scheduled task"), "the cluster has run its duties")
    os.killpg(cluster.pid, signal.SIGSTOP)
    Schedule.objects.filter(name="rekindle:sweep").update(args="(((")
    Schedule.objects.filter(name="rekindle:wake").delete()
    Duty.objects.update(began_at=Now() - timedelta(minutes=10))

    workers.start()

    until(lambda: all_ran("worker"), "a worker has run every duty")
    assert Schedule.objects.get(name="rekindle:sweep").args == "'sweep'"
    assert Schedule.objects.filter(name="rekindle:wake").exists()


def test_a_duty_killed_in_the_middle_leaves_a_record_without_an_end(workers):
    """And is run again by whoever looks next, once it is overdue."""
    script = """
import os, django; django.setup()
from recovery import duties
duties.DUTIES["sweep"] = duties.Declared(lambda ran_by, deadline: os.kill(os.getpid(), 9))
duties.run("sweep", "scheduled task")
"""
    subprocess.run([sys.executable, "-c", script], env=workers.environment, cwd=ROOT)
    killed = Duty.objects.get()
    assert (killed.ended_at, killed.error) == (None, "")
    Duty.objects.update(began_at=Now() - timedelta(minutes=3))

    start("three")
    workers.start()

    until(lambda: Duty.objects.filter(name="sweep", ended_at__isnull=False).exists(), "it has run again")
    killed.refresh_from_db()
    assert killed.ended_at is None


FREEZE = """
import os, signal, django; django.setup()
from recovery import duties
duties.Duty.objects.using = lambda database: os.kill(os.getpid(), signal.SIGSTOP)
duties.run("sweep", "scheduled task")
"""


def test_a_process_frozen_while_it_begins_a_duty_does_not_keep_it_from_others(workers):
    """Faults: frozen inside an open transaction, with its locks."""
    frozen = subprocess.Popen([sys.executable, "-c", FREEZE], env=workers.environment, cwd=ROOT)
    try:
        assert os.WIFSTOPPED(os.waitpid(frozen.pid, os.WUNTRACED)[1])
        assert duties.run("sweep", "worker") is None

        until(lambda: duties.run("sweep", "worker"), "somebody else may run it")
    finally:
        frozen.kill()
        frozen.wait()


def test_qcluster_stops_on_sigterm_and_leaves_nothing_behind(workers, qcluster):
    """C23, S2-024."""
    cluster = qcluster()
    until(lambda: all_ran("scheduled task"), "the cluster has run its duties")

    cluster.send_signal(signal.SIGTERM)

    assert cluster.wait(30) == 0

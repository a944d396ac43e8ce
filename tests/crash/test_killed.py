"""kill -9: whatever a dead worker held comes back, and nothing recorded is done twice."""

import os
import signal
import subprocess
import sys
from collections import Counter

import pytest

from workflows import start, start_many
from workflows.models import Event, Step, Worker, Workflow

from .conftest import ROOT, until

pytestmark = pytest.mark.django_db(transaction=True)


def all_ended():
    return not Workflow.objects.filter(finished_at=None).exists()


def kill(worker):
    os.kill(worker.pid, signal.SIGKILL)


def test_a_worker_killed_in_a_step_runs_that_step_again_and_no_other(workers, ledger):
    """I1, I2, S0-087, S1-019, S3-131, S1-045, S1-046, S3-001, S3-002, S3-058; faults: worker killed in a step."""
    workers.start()
    workflow = start("slow", {"tag": "w", "seconds": 0.7})
    until(lambda: "w:1:begun" in ledger(), "the second step has begun")

    kill(Worker.objects.get(ended_at=None))

    until(all_ended, "the workflow has ended")
    workflow.refresh_from_db()
    assert (workflow.status, workflow.recoveries) == ("completed", 1)
    assert Counter(ledger()) == Counter(
        ["w:0:begun", "w:0:ended", "w:1:begun", "w:1:begun", "w:1:ended", "w:2:begun", "w:2:ended"]
    )


def test_a_second_worker_takes_over_from_the_first(workers, ledger):
    workers.start()
    workers.start()
    ids = start_many("slow", [{"tag": f"w{n}", "seconds": 0.5} for n in range(8)])
    until(lambda: len([line for line in ledger() if line.endswith(":1:begun")]) >= 4, "some are in their second step")

    kill(Worker.objects.filter(ended_at=None, held__isnull=False).distinct()[0])

    until(all_ended, "all workflows have ended")
    assert Workflow.objects.filter(pk__in=ids, status="completed").count() == 8
    finished = Counter(line for line in ledger() if line.endswith(":ended"))
    assert set(finished.values()) == {1}


CLAIM_AND_DIE = """
import os, django; django.setup()
from workflows.claiming import Claimer
from workflows.connections import connect_engine
from workflows.definitions import discover
from workflows.journal import GroupJournal
from workflows.liveness import Liveness
alive = Liveness(1, "{}")
claimed = Claimer(connect_engine("t", by_key=True), alive.worker, GroupJournal(alive.worker), discover()).claim(10)
assert claimed
os._exit(0)
"""


def test_a_worker_killed_between_claim_and_first_step_loses_nothing(workers, ledger):
    """Faults: between claim and first step."""
    workflow = start("three", {"tag": "w"})
    subprocess.run([sys.executable, "-c", CLAIM_AND_DIE], env=workers.environment, cwd=ROOT, check=True)
    workflow.refresh_from_db()
    assert workflow.worker is not None

    workers.start()

    until(all_ended, "the workflow has ended")
    assert ledger() == ["w:0", "w:1", "w:2"]


def test_a_step_that_must_not_run_twice_unseen_is_held_for_review(workers, ledger):
    """C32, S3-130: on_crash="hold"; its start was durable before its body."""
    workers.start()
    workflow = start("held_for_review", {"tag": "pay"})
    until(lambda: "pay:begun" in ledger(), "the payment has begun")

    kill(Worker.objects.get(ended_at=None))

    until(lambda: Workflow.objects.get().basket == "crash_review", "it waits for a person")
    assert ledger() == ["pay:begun"]
    step = Step.objects.get(workflow=workflow)
    assert (step.status, step.attempt) == ("waiting", 1)


def test_a_workflow_that_kills_its_workers_is_given_up_by_name(workers, ledger):
    """I4, S0-046: three recoveries, the fourth death fails it."""
    workers.start(REKINDLE_MAX_RECOVERY_ATTEMPTS="1")
    workflow = start("poison", {"tag": "p"})
    Workflow.objects.filter(pk=workflow.pk).update(max_recovery_attempts=1)

    until(all_ended, "it was given up")

    workflow.refresh_from_db()
    assert workflow.status == "failed"
    assert workflow.error["message"] == "Workflow recovery failed after 1 attempts"
    assert workflow.error["open"] == ["kills"]
    assert ledger() == ["p:begun"] * 2


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_who_is_told_to_stop_hands_back_without_burning_an_attempt(workers, ledger, how):
    """C23, C60; faults: SIGTERM, also to the whole process group, also Ctrl-C; no process is left behind."""
    process = workers.start()
    workflow = start("slow", {"tag": "w", "seconds": 0.4, "steps": 5})
    until(lambda: "w:1:begun" in ledger(), "the second step has begun")

    os.killpg(process.pid, how)
    assert process.wait(20) == 0
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)

    workflow.refresh_from_db()
    assert (workflow.status, workflow.worker, workflow.recovery_attempts) == ("queued", None, 0)
    assert Worker.objects.get().ended_why == "stopped"
    workers.start()
    until(all_ended, "the workflow has ended")
    assert Counter(ledger()).most_common(1)[0][1] == 1


def test_a_frozen_worker_that_wakes_up_late_is_refused(workers, ledger):
    """S0-006, C2, I3: its first write is refused, one zombie_refused event is written."""
    workers.start()
    frozen = Worker.objects.get()
    workflow = start("slow", {"tag": "w", "seconds": 0.5, "steps": 2})
    until(lambda: "w:0:begun" in ledger(), "the first step has begun")
    os.kill(frozen.pid, signal.SIGSTOP)
    try:
        workers.start()
        until(all_ended, "another worker has finished it")
    finally:
        os.kill(frozen.pid, signal.SIGCONT)

    until(lambda: Event.objects.filter(type="workflow.zombie_refused").exists(), "the late write was refused")
    workflow.refresh_from_db()
    assert workflow.status == "completed"
    fences = list(Event.objects.filter(workflow=workflow).order_by("seq").values_list("fence", flat=True))
    assert fences == sorted(fences)
    assert Event.objects.filter(type="workflow.zombie_refused").count() == 1


def test_ten_workers_racing_for_500_run_every_body_once(workers, ledger):
    """I2, I11: four workers racing for 500 and more; one winner each."""
    workers.start(processes=10, concurrency=8)

    start_many("three", [{"tag": f"w{n}"} for n in range(500)])

    until(all_ended, "all 500 have ended")
    assert Workflow.objects.filter(status="completed").count() == 500
    counted = Counter(ledger())
    assert (len(counted), set(counted.values())) == (1500, {1})

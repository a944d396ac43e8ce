"""A deploy is not a crash: old processes are told to stop, new ones have other code."""

import os
import signal
from collections import Counter

import pytest
from django.db.models.functions import Now

from workflows import start_many
from workflows.definitions import _known, workflow
from workflows.models import Event, Worker, Workflow
from workflows.starting import start

from .conftest import until
from .test_killed import all_ended

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE = """
from tests.workflows.flows import note
from workflows import workflow

@workflow("deployed")
def deployed(run):
    run.step(note, "one", name="one")
    run.sleep(0.2)
    return run.step(note, "two", name="two")
"""
CHANGED = BEFORE.replace('name="one"', 'name="renamed"')
GONE = ""


def stop(process):
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(60) == 0


@pytest.fixture
def deploy(workers, tmp_path):
    """Starts a worker with this code of the workflow `deployed`, and stops the one before it."""

    def with_code(code):
        if workers.processes and workers.processes[-1].poll() is None:
            stop(workers.processes[-1])
        folder = tmp_path / str(len(workers.processes))
        folder.mkdir()
        (folder / "host_flows.py").write_text(code)
        path = f"{folder}{os.pathsep}{workers.environment['PYTHONPATH']}"
        return workers.start(REKINDLE_MODULES="tests.workflows.flows,host_flows", PYTHONPATH=path)

    workflow("deployed")(lambda run: None)  # this process only starts it
    yield with_code
    del _known["deployed"]


@pytest.mark.parametrize("code", [GONE, CHANGED], ids=["definition removed", "step renamed"])
def test_what_the_new_code_cannot_run_waits_for_code_that_can(deploy, ledger, code):
    """C8, C53, S0-043, S0-052; faults: definition missing or changed: no attempt is burned, it continues by itself."""
    deploy(BEFORE)
    deployed = start("deployed")
    until(lambda: "one" in ledger() and Workflow.objects.filter(status="paused").exists(), "it sleeps")

    deploy(code)
    other = start("three", {"tag": "other"})
    until(lambda: Workflow.objects.get(pk=other.pk).is_finished, "the new worker works")
    if code == CHANGED:
        until(lambda: Workflow.objects.filter(pause_reason="blocked").exists(), "it is blocked")

    deployed.refresh_from_db()
    assert (deployed.status, deployed.worker, deployed.recovery_attempts) == ("paused", None, 0)
    assert deployed.wake_at is not None
    deploy(BEFORE)
    Workflow.objects.filter(pause_reason="blocked").update(wake_at=Now())  # the minute has passed
    until(all_ended, "it goes on with its own code")
    deployed.refresh_from_db()
    assert (deployed.status, deployed.recoveries) == ("completed", 0)
    assert [line for line in ledger() if line in ("one", "two")] == ["one", "two"]


def test_sigterm_in_the_middle_of_a_batch_loses_nothing_and_burns_nothing(workers, ledger):
    """C23, C60, S0-001, S1-001, S2-024, S2-049: what was claimed and not begun is given back at once."""
    process = workers.start(concurrency=8)
    start_many("slow", [{"tag": f"w{n}", "seconds": 0.2, "steps": 2} for n in range(40)])
    until(lambda: len(ledger()) > 12, "the batch is under way")

    stop(process)

    assert not Workflow.objects.filter(worker__isnull=False).exists()
    assert Worker.objects.get().ended_why == "stopped"
    workers.start(concurrency=16)
    until(all_ended, "all have ended")
    assert Workflow.objects.filter(status="completed", recoveries=0).count() == 40
    assert not Event.objects.filter(type="workflow.orphaned").exists()
    assert set(Counter(ledger()).values()) == {1}


@pytest.mark.proof
def test_four_quick_deploys_fail_nobody(workers, ledger):
    """C60: only take-overs without progress count."""
    workflow = start("slow", {"tag": "w", "seconds": 0.3, "steps": 8})
    for n in range(4):
        process = workers.start()
        until(lambda n=n: f"w:{n}:begun" in ledger(), "it has gone on")
        stop(process)

    workers.start()

    until(all_ended, "it has ended")
    workflow.refresh_from_db()
    assert (workflow.status, workflow.recoveries) == ("completed", 0)

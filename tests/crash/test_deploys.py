"""A deploy is not a crash: old processes are told to stop, new ones have other code."""

import os
import re
import signal
from collections import Counter

import pytest
from django.db.models.functions import Now

from recovery.checking import check
from recovery.metrics import measure
from workflows import start, start_many, workflow
from workflows.claiming import why_not_claimed
from workflows.definitions import _known
from workflows.inline import InlineConnection
from workflows.models import Event, Step, Worker, Workflow

from .conftest import until
from .test_killed import all_ended

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE = """
import time
from tests.crash.flows import first
from tests.workflows.flows import note
from workflows import workflow

def pay():
    time.sleep(600 if first("pay:begun") else 0)
    return note("pay:ended")

@workflow("deployed")
def deployed(run):
    run.step(note, "load", name="load")
    return run.step(pay)
"""
CHANGED = BEFORE.replace('name="load"', 'name="renamed"')
GONE = ""


def stop(process):
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(60) == 0


def crash(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture
def deploy(workers, tmp_path):
    """Ends the worker that runs, if there is one, writes other code to the disk and starts a worker with it."""
    code_on_disk = tmp_path / "host_flows.py"
    workers.environment |= {
        "REKINDLE_MODULES": "tests.workflows.flows,host_flows",
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{workers.environment['PYTHONPATH']}",
        "PYTHONDONTWRITEBYTECODE": "1",  # two versions within a second and of the same size look the same to its cache
        "REKINDLE_GRACE": "0.1",
    }

    def with_code(code, end=stop):
        for process in workers.processes[-1:]:
            end(process)
        code_on_disk.write_text(code)
        return workers.start()

    return with_code


@pytest.fixture
def started(deploy, ledger):
    """One that was begun with the code before, and is in its second step."""

    @workflow("deployed")
    def test_only_starts_it(run): ...

    one = start("deployed")
    del _known["deployed"]  # only code on the disk of a worker counts
    deploy(BEFORE)
    until(lambda: Step.objects.filter(name="pay", status="open").exists(), "it is in its second step")
    return one


def sentence(client, one):
    return " ".join(re.sub(r"<[^>]*>", " ", client.get(f"/workflows/{one.pk}/").content.decode()).split())


@pytest.mark.parametrize(("end", "recoveries"), [(crash, 1), (stop, 0)], ids=["killed", "stopped"])
def test_what_no_code_on_disk_knows_any_more_waits_until_it_is_back(
    deploy, started, ledger, admin_client, end, recoveries
):
    """C8, C53, S0-043, S0-052; faults: definition missing: visible, no attempt is burned, it continues by itself."""
    deploy(GONE, end)
    other = start("three", {"tag": "other"})
    until(lambda: Workflow.objects.get(pk=other.pk).is_finished, "the new worker works")
    until(lambda: Workflow.objects.filter(pk=started.pk, wake_at__lte=Now()).exists(), "nobody holds it, and it is due")

    started.refresh_from_db()
    assert (started.is_finished, started.worker, started.recovery_attempts, started.recoveries) == (False, None, 0, 0)
    assert why_not_claimed(InlineConnection(), started.pk) == "no worker has this code"
    assert check(started.pk).reason == "definition_missing"
    assert "no running worker has the code of deployed" in sentence(admin_client, started)

    deploy(BEFORE)
    until(all_ended, "it goes on with its own code")
    started.refresh_from_db()
    assert (started.status, started.recoveries) == ("completed", recoveries)
    assert without_other(ledger) == ["load", "pay:begun", "pay:begun", "pay:ended"]


@pytest.mark.parametrize(("end", "recoveries"), [(crash, 1), (stop, 0)], ids=["killed", "stopped"])
def test_what_the_code_on_disk_no_longer_fits_is_blocked_until_it_does(
    deploy, started, ledger, admin_client, end, recoveries
):
    """C8, C53; faults: definition changed: blocked, visible, alerted, no attempt burned; continues when it fits again."""
    deploy(CHANGED, end)
    until(lambda: Workflow.objects.filter(pause_reason="blocked").exists(), "it is blocked")

    started.refresh_from_db()
    assert (started.worker, started.recovery_attempts, started.recoveries) == (None, 0, recoveries)
    why = "at .0 step load is recorded, the code now has step renamed"
    assert started.error["message"] == why
    assert why in check(started.pk).why
    assert why in sentence(admin_client, started)
    assert measure("needs_people").value == 1

    deploy(BEFORE)
    Workflow.objects.filter(pause_reason="blocked").update(wake_at=Now())  # the minute has passed
    until(all_ended, "it goes on with its own code")
    started.refresh_from_db()
    assert (started.status, started.recoveries) == ("completed", recoveries)
    assert without_other(ledger) == ["load", "pay:begun", "pay:begun", "pay:ended"]


def without_other(ledger):
    return [line for line in ledger() if not line.startswith("other")]


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

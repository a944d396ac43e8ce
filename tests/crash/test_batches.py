"""A runner of a batch is killed, in whatever place: every item has one act, one audit entry, one result."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from recovery import batches
from recovery.models import AuditEntry, Batch
from tests.factories import WorkflowFactory
from workflows.models import Event, Workflow

from .conftest import ROOT, until

pytestmark = pytest.mark.django_db(transaction=True)

RUNNER = """
import time, django; django.setup()
from recovery import batches
batches.carry_on(time.monotonic() + 60)
"""
# Dies where the third statement that begins like this is about to be sent.
DOOMED = """
import os, sys, time, django; django.setup()
from django.db import connection
from recovery import batches
met = 0
def die(execute, sql, params, many, context):
    global met
    met += sql.startswith(sys.argv[1])
    if met == 3:
        os.kill(os.getpid(), 9)
    return execute(sql, params, many, context)
with connection.execute_wrapper(die):
    batches.carry_on(time.monotonic() + 60)
"""


def begin(count):
    for _ in range(count):
        WorkflowFactory()
    found = Workflow.objects.all()
    return batches.begin("cancel", found, by="ada", via="page", reason="tidy up", chosen="All")


def run(program, *given, environment):
    return subprocess.Popen([sys.executable, "-c", program, *given], cwd=ROOT, env=environment)


def once_each(batch):
    """Told by the audit, the diary and the items, which must agree."""
    batch.refresh_from_db()
    acted = Counter(AuditEntry.objects.filter(act="cancel", refused="").values_list("subject_id", flat=True))
    told = Counter(
        str(pk) for pk in Event.objects.filter(type="workflow.cancelled").values_list("workflow_id", flat=True)
    )
    items = Counter(str(pk) for pk in batch.items.filter(result="done").values_list("workflow_id", flat=True))
    assert acted == told == items
    assert set(items.values()) <= {1}
    assert len(items) == batch.done
    return len(items)


@pytest.mark.parametrize(
    "before",
    [
        'UPDATE "rekindle_workflow"',
        'INSERT INTO "rekindle_recovery_auditentry"',
        "\nWITH counted",
    ],
)
def test_a_runner_killed_inside_an_item_leaves_it_undone_and_the_next_goes_on(outside, before):
    """I6, I10: between an act and its result there is nothing to die in."""
    batch = begin(6)

    assert run(DOOMED, before, environment=outside).wait(60) == -signal.SIGKILL

    assert once_each(batch) == 2
    assert batch.state == "running"
    assert run(RUNNER, environment=outside).wait(60) == 0
    assert once_each(batch) == 6
    assert (batch.state, batch.skipped, batch.failed) == ("done", 0, 0)


def test_a_runner_killed_anywhere_loses_nothing(outside):
    batch = begin(150)
    doomed = run(RUNNER, environment=outside)
    until(lambda: Batch.objects.get().done >= 3, "it has begun")
    os.kill(doomed.pid, signal.SIGKILL)
    doomed.wait()

    once_each(batch)
    batches.carry_on(time.monotonic() + 60)

    assert once_each(batch) == 150
    assert batch.state == "done"


def test_two_runners_share_a_batch_and_do_nothing_twice(outside):
    batch = begin(150)

    runners = [run(RUNNER, environment=outside) for _ in range(2)]

    assert [runner.wait(60) for runner in runners] == [0, 0]
    assert once_each(batch) == 150
    assert (batch.state, batch.skipped, batch.failed) == ("done", 0, 0)


def test_any_worker_takes_a_batch_up_by_itself(workers):
    """No scheduler is there."""
    workers.start()
    for _ in range(5):
        WorkflowFactory(pending=True)
    found = Workflow.objects.all()

    batch = batches.begin("cancel", found, by="ada", via="page", reason="tidy up", chosen="All")

    until(lambda: Batch.objects.get().state == "done", "the batch is done")
    assert once_each(batch) == 5

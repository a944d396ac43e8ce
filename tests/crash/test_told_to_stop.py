"""A worker is told to stop at a bad moment: while a run waits for its last word to be written, or before it is born."""

import signal
import subprocess
import sys
import time

import pytest
from django.db import connection, transaction

from workflows import start
from workflows.models import Event, Worker, Workflow

from . import flows  # noqa: F401
from .conftest import ROOT, until

pytestmark = pytest.mark.django_db(transaction=True)


def journal_waits():
    """It looks at the row again and again, because somebody has locked it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute("SELECT query FROM pg_stat_activity WHERE application_name = 'rekindle journal'")
        return any("applied FROM rekindle_workflow" in query for (query,) in cursor.fetchall())


def test_what_has_ended_is_not_handed_back_although_its_end_is_not_written_yet(workers, ledger):
    """I3, I6; faults: SIGTERM. The grace is over before the journal gets at the row."""
    process = workers.start(REKINDLE_GRACE="0.2")
    workflow = start("lazy_end")
    until(lambda: "begun" in ledger(), "its only step runs")

    with transaction.atomic():
        Workflow.objects.select_for_update().get(pk=workflow.pk)
        until(lambda: "ended" in ledger() and journal_waits(), "its end cannot be written")
        process.send_signal(signal.SIGTERM)
        time.sleep(1)  # far longer than the grace

    process.wait(30)
    workflow.refresh_from_db()
    assert (workflow.status, workflow.worker, Worker.objects.get().ended_why) == ("completed", None, "stopped")
    told = list(Event.objects.filter(workflow=workflow).order_by("seq").values_list("type", flat=True))
    assert told[-1] == "workflow.completed"
    assert "workflow.handed_back" not in told


STOPPED_AT_BIRTH = """
import os, signal, django; django.setup()
from workflows.supervisor import Supervisor
supervisor = Supervisor(1, 2)
signal.signal(signal.SIGTERM, supervisor._stop)  # as its run() does
supervisor._fork()
(child,) = supervisor.children
os.kill(child, signal.SIGTERM)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_process_that_is_told_to_stop_while_it_is_born_hears_it(workers):
    """Faults: SIGTERM. Nobody would tell it again, and in the end it would be killed with all that it holds."""
    command = [sys.executable, "-c", STOPPED_AT_BIRTH]

    born = subprocess.run(command, cwd=ROOT, env=workers.environment, capture_output=True, text=True, timeout=60)

    assert born.stdout.split() == ["0"]
    assert Worker.objects.get().ended_why == "stopped"

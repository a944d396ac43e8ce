"""The database goes away under load: nobody is declared dead, no step fails, no attempt is burned."""

import os
import signal
from collections import Counter

import pytest
from django.conf import settings
from django.db import connection, connections

from project.postgres import cluster
from project.postgres.home import Home
from workflows import start_many
from workflows.models import Event, Worker, Workflow

from .conftest import until

pytestmark = pytest.mark.django_db(transaction=True)


def answers():
    try:
        connection.ensure_connection()
        return connection.is_usable()
    except Exception:
        connections.close_all()
        return False


def restart(how):
    server = cluster.postmaster(Home.at(settings.DATA_DIR))
    connections.close_all()
    os.kill(server, how)
    until(lambda: cluster.postmaster(Home.at(settings.DATA_DIR)) not in (server, None), "the server is being restarted")
    until(answers, "the database answers again")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["fast restart", "crash of the server"])
def test_a_restart_under_load_fails_no_step_and_kills_nobody(workers, ledger, how):
    """Faults: Postgres restarted; I1, I2."""
    workers.start(processes=2, concurrency=8)
    start_many("slow", [{"tag": f"w{n}", "seconds": 0.05, "steps": 10} for n in range(40)])
    until(lambda: len(ledger()) > 100, "the work is under way")

    restart(how)

    until(lambda: not Workflow.objects.filter(finished_at=None).exists(), "all have ended")
    assert Workflow.objects.filter(status="completed", recoveries=0).count() == 40
    assert Worker.objects.filter(ended_at=None).count() == Worker.objects.count() == 2
    assert not Event.objects.filter(type__in=["step.failed", "workflow.orphaned", "workflow.zombie_refused"]).exists()
    assert set(Counter(line for line in ledger() if line.endswith("ended")).values()) == {1}


def test_a_connection_that_is_terminated_is_replaced_unnoticed(workers, ledger):
    """Faults: single connections terminated; committed, but nobody heard it."""
    workers.start(processes=1, concurrency=8)
    start_many("slow", [{"tag": f"w{n}", "seconds": 0.02, "steps": 20} for n in range(10)])
    until(lambda: len(ledger()) > 20, "the work is under way")

    with connection.cursor() as cursor:
        for name in ("journal", "claim", "lock", "journal", "journal"):
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s",
                [f"rekindle {name}"],
            )
            before = len(ledger())
            until(
                lambda before=before: len(ledger()) > before + 10 or not Workflow.objects.filter(finished_at=None),
                "it goes on",
            )

    until(lambda: not Workflow.objects.filter(finished_at=None).exists(), "all have ended")
    assert Workflow.objects.filter(status="completed", recoveries=0).count() == 10
    assert Worker.objects.get().ended_at is None
    assert not Event.objects.filter(type__in=["step.failed", "workflow.zombie_refused"]).exists()
    assert set(Counter(ledger()).values()) == {1}

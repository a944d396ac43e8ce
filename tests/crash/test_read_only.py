"""The database answers, and takes nothing: it was demoted, or its keeper made it read-only. Everybody waits until it is over."""

import time
from collections import Counter
from contextlib import contextmanager

import pytest
from django.db import connection

from workflows import start, start_many
from workflows.models import Event, Worker, Workflow

from . import flows  # noqa: F401
from .conftest import FAST, until

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def read_only():
    """For everybody but this test."""
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = off")
        cursor.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        cursor.execute("SELECT pg_reload_conf()")
        try:
            yield
        finally:
            cursor.execute("ALTER SYSTEM RESET default_transaction_read_only")
            cursor.execute("SELECT pg_reload_conf()")


def test_a_database_that_takes_nothing_for_longer_than_the_threshold_kills_nobody(workers, ledger):
    """Faults: a failover in which the old primary answers for a while; I1, I2, I7."""
    process = workers.start(processes=2)
    start_many("slow", [{"tag": f"w{n}", "seconds": 0.05, "steps": 10} for n in range(12)])
    until(lambda: len(ledger()) > 20, "the work is under way")

    with read_only():
        time.sleep(2 * float(FAST["REKINDLE_STALE_AFTER"]))
        assert Workflow.objects.filter(finished_at=None).exists()

    until(lambda: not Workflow.objects.filter(finished_at=None).exists(), "all have ended")
    start("three", {"tag": "later"})
    until(lambda: "later:2" in ledger(), "what comes later is run too")
    assert process.poll() is None
    assert Worker.objects.filter(ended_at=None).count() == Worker.objects.count() == 2
    assert not Workflow.objects.exclude(status="completed", recoveries=0).exists()
    assert not Event.objects.filter(type__in=["step.failed", "workflow.zombie_refused"]).exists()
    assert set(Counter(line for line in ledger() if line.endswith("ended")).values()) == {1}

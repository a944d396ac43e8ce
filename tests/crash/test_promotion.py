"""The database itself dies, moves or does not answer, while workers run. Real servers, real replication."""

import time
from collections import Counter

import pytest
from django.db import connection

from workflows import start_many
from workflows.models import Event, Step, Worker, Workflow

from . import flows  # noqa: F401
from .conftest import until
from .servers import Server, copy_of_the_runs, instead
from .test_killed import all_ended

pytestmark = pytest.mark.django_db(transaction=True)

AWAY = 15  # seconds: five times as long as a worker may be silent here


@pytest.fixture
def primary(transactional_db, tmp_path):
    server = copy_of_the_runs(tmp_path / "primary")
    yield server
    server.stop()


@pytest.fixture
def replica(primary, tmp_path):
    """It has whatever the primary has acknowledged: a commit waits for it."""
    server = Server(tmp_path / "replica", primary.home, follows=True)
    primary.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.ask("SELECT pg_reload_conf()")
    until(lambda: primary.ask("SELECT sync_state FROM pg_stat_replication") == "sync", "the replica is in step")
    yield server
    server.stop()


def load(ledger):
    """Steps with effects outside, and atomic ones with effects in the database."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE crash_effects (workflow_id uuid)")
    start_many("slow", [{"tag": f"w{n}", "seconds": 0.05, "steps": 10} for n in range(20)])
    start_many("adds", [{"steps": 10} for _ in range(20)])
    until(lambda: len(ledger()) > 100 and Step.objects.filter(name="add").count() > 20, "the work is under way")
    assert not all_ended()


def assert_nothing_happened(ledger):
    """I1, I2: all of it ended well, once, in the hands it was in."""
    assert Workflow.objects.filter(status="completed", recoveries=0).count() == 40
    assert Worker.objects.filter(ended_at=None).count() == Worker.objects.count() == 2
    assert not Event.objects.filter(type__in=["step.failed", "workflow.orphaned", "workflow.zombie_refused"]).exists()
    ended = Counter(line for line in ledger() if line.endswith(":ended"))
    assert (len(ended), set(ended.values())) == (200, {1})
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM crash_effects")
        assert cursor.fetchone()[0] == 200


def test_a_replica_that_is_promoted_is_gone_on_with(primary, replica, workers, ledger):
    """I1, I2; faults: replica promoted: nobody is declared dead, nothing acknowledged is lost, no recorded step runs again."""
    with instead(primary, replica) as address:
        workers.start(processes=2, concurrency=8, DATABASE_URL=address)
        load(ledger)
        before = set(Worker.objects.values_list("incarnation", flat=True))

        primary.crash()
        assert replica.ask("SELECT pg_promote()")

        until(all_ended, "all have ended on the new primary")
        assert_nothing_happened(ledger)
        until(lambda: not Worker.objects.filter(incarnation__in=before).exists(), "they have their locks on it")
        workers.end()


def stopped(server):
    server.stop()
    time.sleep(AWAY)
    server.start()


def frozen(server):
    server.freeze()
    time.sleep(AWAY)
    server.thaw()


@pytest.mark.proof
@pytest.mark.parametrize("is_away", [stopped, frozen], ids=["stopped", "frozen"])
def test_a_database_that_is_away_for_15_seconds_is_waited_for(primary, workers, ledger, is_away):
    """I1, I2; faults: 15 s outage, longer than the threshold: no step fails, nobody is declared dead, all goes on."""
    with instead(primary) as address:
        workers.start(processes=2, concurrency=8, DATABASE_URL=address)
        load(ledger)

        is_away(primary)

        until(all_ended, "all have ended")
        assert_nothing_happened(ledger)
        workers.end()

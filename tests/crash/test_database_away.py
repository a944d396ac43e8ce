"""The database goes away under load: nobody is declared dead, no step fails, no attempt is burned."""

import os
import signal
from collections import Counter
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection, connections
from django.db.models.functions import Now

from project.postgres import cluster
from project.postgres.home import Home
from workflows import start_many
from workflows.models import Event, Worker, Workflow

from . import flows  # noqa: F401
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


@pytest.fixture
def crash_rows():
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE crash_rows AS SELECT id, 0 AS times FROM generate_series(1, 2) AS id")
        yield lambda: cursor.execute("SELECT times FROM crash_rows").fetchall()
        cursor.execute("DROP TABLE crash_rows")


def test_the_victim_of_a_deadlock_is_tried_again_and_has_not_failed(workers, crash_rows):
    """Faults: deadlock. Its transaction was undone, the other went on; both take effect, once."""
    workers.start(concurrency=2)

    start_many("crosses", [{"rows": [1, 2]}, {"rows": [2, 1]}])

    until(lambda: not Workflow.objects.filter(finished_at=None).exists(), "both have ended")
    assert Workflow.objects.filter(status="completed", recoveries=0).count() == 2
    assert Event.objects.filter(type="step.interrupted").exists()
    assert not Event.objects.filter(type="step.failed").exists()
    assert crash_rows() == [(2,), (2,)]


# The first few lines of any diary cannot be written. A sequence is not rolled back, so it counts what was refused.
TROUBLE = """
CREATE SEQUENCE refused;
CREATE FUNCTION trouble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF nextval('refused') <= 6 THEN RAISE EXCEPTION 'for a while' USING ERRCODE = '%s'; END IF; RETURN NEW; END $$;
CREATE TRIGGER trouble BEFORE INSERT ON rekindle_event FOR EACH ROW WHEN (NEW.type NOT LIKE '%%queued') EXECUTE FUNCTION trouble();
"""


@pytest.mark.parametrize(
    "code", ["40P01", "40001", "53100", "53200"], ids=["deadlock", "serialization failure", "disk full", "no memory"]
)
def test_trouble_that_passes_fails_no_step_and_ends_no_process(workers, ledger, code):
    """Faults: deadlock, serialization failure, disk full: claim and journal back off and try again."""
    process = workers.start()
    with connection.cursor() as cursor:
        cursor.execute(TROUBLE % code)
        try:
            start_many("three", [{"tag": f"w{n}"} for n in range(4)])
            until(lambda: not Workflow.objects.filter(finished_at=None).exists(), "all have ended")
        finally:
            cursor.execute("DROP FUNCTION trouble CASCADE; DROP SEQUENCE refused")

    assert process.poll() is None
    assert Worker.objects.get().ended_at is None
    assert Workflow.objects.filter(status="completed", recoveries=0).count() == 4
    assert not Event.objects.filter(type__in=["step.failed", "workflow.zombie_refused"]).exists()
    assert set(Counter(ledger()).values()) == {1}


def test_a_worker_that_finds_no_connection_free_waits_for_one(workers, ledger):
    """Faults: connection limit reached. Nobody is declared dead, and no step fails because of it."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE few LOGIN; GRANT pg_read_all_data, pg_write_all_data, pg_monitor TO few")
        cursor.execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO few")
        address = workers.environment["DATABASE_URL"].replace(f"//{connection.settings_dict['USER']}@", "//few@")
        try:
            workers.start(DATABASE_URL=address)
            start_many("slow", [{"tag": f"w{n}", "seconds": 0.05, "steps": 10} for n in range(6)])
            until(lambda: len(ledger()) > 20, "the work is under way")

            cursor.execute("ALTER ROLE few CONNECTION LIMIT 0")
            cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'few'")
            silent = Worker.objects.filter(heartbeat_at__lt=Now() - timedelta(seconds=1))
            until(silent.exists, "it has been refused for longer than a heartbeat")
            before = len(ledger())
            cursor.execute("ALTER ROLE few CONNECTION LIMIT -1")

            until(lambda: not Workflow.objects.filter(finished_at=None).exists(), "all have ended")
        finally:
            workers.end()
            cursor.execute("DROP OWNED BY few; DROP ROLE few")

    assert before < 120
    assert Workflow.objects.filter(status="completed", recoveries=0).count() == 6
    assert Worker.objects.get().ended_at is None
    assert not Event.objects.filter(type__in=["step.failed", "workflow.zombie_refused"]).exists()
    assert set(Counter(ledger()).values()) == {1}

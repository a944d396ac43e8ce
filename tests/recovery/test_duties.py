"""A run of a duty: recorded before it begins, counted honestly, harmless to the others when it fails."""

import logging
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from recovery import duties, schedules, standby, starting_up
from recovery.duties import DUTIES, Declared
from recovery.models import Duty
from recovery.tally import Tally
from workflows import start, start_many

pytestmark = pytest.mark.django_db(transaction=True)


def broken(ran_by, deadline):
    raise RuntimeError("no such luck")


@pytest.fixture
def broken_sweep(monkeypatch):
    monkeypatch.setitem(DUTIES, "sweep", Declared(broken))


def age(name, seconds):
    Duty.objects.filter(name=name).update(began_at=Now() - timedelta(seconds=seconds))


def test_a_run_is_recorded_with_what_it_found_and_who_ran_it(monkeypatch):
    """C37, S3-072."""
    monkeypatch.setattr(
        "recovery.duties.sweep_now",
        lambda by, **_: {"found": 5, "released": 2, "gave_up": 1, "held": 1, "skipped": 1, "cancelled": 0},
    )

    duties.run("sweep", "scheduled task")

    duty = Duty.objects.get()
    assert (duty.name, duty.ran_by, duty.error) == ("sweep", "scheduled task", "")
    assert (duty.found, duty.recovered, duty.failed, duty.held, duty.skipped) == (5, 2, 1, 1, 1)
    assert duty.ended_at > duty.began_at


def test_the_record_is_there_before_the_work_begins(monkeypatch):
    """A killed run stays visible: begun, never ended."""
    seen = []
    monkeypatch.setitem(
        DUTIES, "sweep", Declared(lambda ran_by, deadline: seen.append(Duty.objects.get().ended_at) or Tally())
    )

    duties.run("sweep", "worker")

    assert seen == [None]


def test_a_duty_that_fails_is_recorded_and_stops_no_other(broken_sweep, caplog):
    """S2-023."""
    standby.stand_in(list(DUTIES))

    assert Duty.objects.get(name="sweep").error == "RuntimeError: no such luck"
    assert Duty.objects.exclude(name="sweep").filter(error="", ended_at__isnull=False).count() == len(DUTIES) - 1
    assert "Scheduler error" in caplog.messages


def test_the_scan_says_what_it_does_in_the_words_of_the_seeds(caplog):
    """S2-026, S2-038, S2-071, S3-073, S3-076."""
    caplog.set_level(logging.DEBUG, "rekindle")

    duties.run("sweep", "scheduled task")
    duties.run("wake", "scheduled task")

    assert caplog.messages[:2] == ["Scanning for orphaned cases...", "Recovery scan complete. Recovered 0 cases"]
    assert "No events ready" in caplog.messages
    completed = next(record for record in caplog.records if record.message == "Scheduler job completed")
    assert (completed.processed, completed.failed, completed.eventsPerSecond) == (0, 0, "0.00")
    assert completed.durationMs >= 0


def test_the_scan_says_how_many_are_due(caplog):
    """S2-027."""
    caplog.set_level(logging.DEBUG, "rekindle")
    start_many("three", [{"tag": str(n)} for n in range(3)])
    start("three", {"tag": "tomorrow"}, at=timezone.now() + timedelta(days=1))

    duties.run("wake", "scheduled task")

    assert "Found 3 events to process" in caplog.messages
    assert "No events ready" not in caplog.messages


def test_tasks_that_piled_up_do_not_all_run():
    for _ in range(5):
        duties.scheduled("sweep")

    assert Duty.objects.count() == 1


def test_a_duty_is_overdue_when_its_last_run_began_two_intervals_ago():
    for name in DUTIES:
        duties.run(name, "scheduled task")
    age("wake", 121)
    age("sweep", 119)

    assert duties.overdue() == ["wake"]


def test_of_two_who_stand_in_at_once_one_runs_it():
    duties.run("sweep", "scheduled task")
    age("sweep", 600)

    assert [duties.run("sweep", "worker", unless_within=120) is not None for _ in range(2)] == [True, False]


def test_a_statement_of_a_duty_cannot_outlast_the_hosts_patience(monkeypatch, settings):
    """The cluster kills a task after its time-out; the duty has ended by itself before that."""
    settings.Q_CLUSTER = {"timeout": 20}
    seen = []
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        before = cursor.fetchone()

        def act(ran_by, deadline):
            cursor.execute("SHOW statement_timeout")
            seen.append(cursor.fetchone()[0])
            return Tally()

        monkeypatch.setitem(DUTIES, "sweep", Declared(act))
        duties.run("sweep", "worker")

        cursor.execute("SHOW statement_timeout")
        assert (seen, cursor.fetchone()) == (["16s"], before)


def test_a_sweep_of_the_scheduler_ends_within_the_hosts_patience_however_much_there_is(monkeypatch, settings):
    """Design 9: the cluster would kill it, and call that a failed task."""
    settings.Q_CLUSTER = {"timeout": 20}
    given = []
    monkeypatch.setattr(duties, "sweep_now", lambda ran_by, budget: given.append(budget) or {})

    duties.run("sweep", "scheduled task")

    assert 15 < given[0] <= 16


def test_a_starting_cluster_runs_every_duty_at_once(caplog):
    """S2-014, S2-019, S2-020."""
    caplog.set_level(logging.INFO, "rekindle")

    starting_up.on_spawn()
    starting_up.on_spawn()

    assert caplog.messages[0] == "Scheduler starting..."
    assert caplog.messages.count("Initial recovery run: 0 events processed") == 1
    assert sorted(Duty.objects.values_list("name", flat=True)) == sorted(DUTIES)


def test_a_first_run_that_fails_does_not_stop_the_cluster(broken_sweep, monkeypatch, caplog):
    """S2-021."""
    starting_up.on_spawn()
    assert "Recovery run failed" in caplog.messages
    assert Duty.objects.filter(error="").count() == len(DUTIES) - 1

    monkeypatch.setattr(schedules, "synchronise", lambda: 1 / 0)
    starting_up.on_spawn()


def test_a_cluster_of_another_name_leaves_the_duties_alone(settings):
    settings.REKINDLE = {"CLUSTER": "elsewhere"}

    starting_up.on_spawn()

    assert not Duty.objects.exists()

"""One alert opens and one resolves for each incident, whoever evaluates and however the figure wavers."""

import threading
import time
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models.functions import Now

from recovery import alerts, duties, metrics, rules
from recovery.metrics import ALERTABLE, Measured
from recovery.models import Alert, AlertRule, Duty, Recovery
from workflows import start, start_many
from workflows.ids import uuid7
from workflows.models import Worker, Workflow

pytestmark = pytest.mark.django_db(transaction=True)

FAR = float("inf")


@pytest.fixture
def gauge(monkeypatch):
    """A figure the test sets by hand, and a rule that watches nothing else."""
    AlertRule.objects.all().delete()
    AlertRule.objects.create(name="Too much", metric="gauge", threshold=10)
    level = {"value": 0.0}
    monkeypatch.setitem(ALERTABLE, "gauge", lambda window, scope: Measured(level["value"], {"of": scope}))

    def put(value):
        level["value"] = value
        return alerts.evaluate("worker", FAR)

    return put


def recovered(**given):
    wanted = {"workflow_id": uuid7(), "workflow_name": "order", "fence": 1}
    wanted |= {"finding": "dead_worker", "reason": "stale_detection", "detected_by": "worker", "attempt": 1}
    return Recovery.objects.create(**wanted | {"max_attempts": 3, "settled_at": Now()} | given)


def opened():
    return set(Alert.objects.filter(resolved_at=None).values_list("rule__builtin", flat=True))


def evaluate():
    return alerts.evaluate("worker", FAR)


def test_one_incident_is_one_alert_with_its_peak(gauge):
    """I9."""
    for value in (11, 90, 40, 12):
        gauge(value)
    gauge(10)
    gauge(3)

    alert = Alert.objects.get()
    assert (alert.peak, alert.value, alert.resolved_at is not None) == (90, 10, True)


def test_the_tally_says_what_opened_stayed_and_resolved(gauge):
    assert [gauge(value).counts for value in (11, 12, 0)] == [
        {"found": 1, "recovered": 0, "failed": 0, "held": 0, "skipped": 0},
        {"found": 0, "recovered": 0, "failed": 0, "held": 1, "skipped": 0},
        {"found": 0, "recovered": 1, "failed": 0, "held": 0, "skipped": 0},
    ]


def test_a_figure_that_wavers_around_the_threshold_does_not_flap(gauge):
    AlertRule.objects.update(resolve_at=5)

    for value in (11, 9, 11, 9, 11, 6):
        gauge(value)
    assert Alert.objects.get().resolved_at is None
    gauge(5)

    assert Alert.objects.get().resolved_at is not None


def test_an_alert_opens_only_when_the_breach_has_lasted(gauge):
    AlertRule.objects.update(lasting=60)

    gauge(11)
    gauge(11)
    assert not Alert.objects.exists()
    AlertRule.objects.update(breached_since=Now() - timedelta(seconds=61))
    gauge(11)

    assert Alert.objects.count() == 1


def test_a_breach_that_ends_in_between_starts_counting_anew(gauge):
    AlertRule.objects.update(lasting=60)
    gauge(11)
    AlertRule.objects.update(breached_since=Now() - timedelta(seconds=61))

    gauge(1)
    gauge(11)

    assert not Alert.objects.exists()


def test_a_figure_that_must_not_fall_keeps_its_lowest_as_the_peak(gauge):
    AlertRule.objects.update(comparison="<", threshold=5)

    for value in (4, 1, 3):
        gauge(value)

    assert Alert.objects.get().peak == 1


def test_many_who_evaluate_at_once_open_one(gauge):
    """I9: under the rule's lock, so that nobody even runs against the unique constraint."""
    done = []

    def evaluate_here():
        try:
            done.append(alerts.evaluate("worker", FAR))
        finally:
            connection.close()

    gauge(0)
    ALERTABLE["gauge"] = lambda window, scope: time.sleep(0.3) or Measured(99)
    threads = [threading.Thread(target=evaluate_here) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    evaluate()
    assert Alert.objects.count() == 1
    assert [tally.failed for tally in done] == [0] * 8


def test_a_rule_that_cannot_be_evaluated_says_so_and_stops_no_other(gauge):
    AlertRule.objects.create(name="Nonsense", metric="no such figure", threshold=1)

    tally = gauge(11)

    assert "no such figure" in AlertRule.objects.get(name="Nonsense").trouble
    assert "no such figure" in tally.note["not_evaluated"]["Nonsense"]
    assert (tally.found, tally.failed) == (1, 1)


def test_switching_a_rule_off_or_deleting_it_resolves_its_alert(gauge):
    gauge(11)
    AlertRule.objects.update(enabled=False)
    gauge(11)
    assert Alert.objects.get().resolved_at is not None
    AlertRule.objects.update(enabled=True)
    gauge(11)
    AlertRule.objects.all().delete()
    evaluate()

    assert Alert.objects.filter(resolved_at=None).count() == 0


def test_what_an_operator_changed_survives_migrate_and_what_he_deleted_comes_back():
    AlertRule.objects.filter(builtin="late").update(threshold=500, name="Behind", enabled=False)
    AlertRule.objects.filter(builtin="stale").delete()

    call_command("migrate", verbosity=0)

    late = AlertRule.objects.get(builtin="late")
    assert (late.threshold, late.name, late.enabled) == (500, "Behind", False)
    assert AlertRule.objects.filter(builtin="stale").exists()
    assert AlertRule.objects.count() == len(rules.BUILTIN)


def test_every_installed_rule_has_its_figure():
    assert {rule["metric"] for rule in rules.BUILTIN.values()} <= set(ALERTABLE)
    tally = evaluate()

    assert (tally.failed, tally.note) == (0, {})


def test_more_than_ten_recoveries_in_an_hour():
    """S0-095, S0-096: what the watch took over by itself; an operator's own acts are no anomaly."""
    for n in range(11):
        recovered(detected_at=Now() - timedelta(minutes=70 if n == 0 else 10))
    evaluate()
    assert "recoveries" not in opened()

    recovered()
    recovered(reason="manual")
    evaluate()

    assert "recoveries" in opened()
    assert Alert.objects.get(rule__builtin="recoveries").value == 11


def test_any_failed_recovery_and_any_exhausted():
    """S0-097, S0-098."""
    recovered(outcome="died_again")
    evaluate()
    assert {"recovery_failed"} == opened() & {"recovery_failed", "attempts_exhausted"}

    recovered(outcome="gave_up")
    evaluate()

    assert {"recovery_failed", "attempts_exhausted"} <= opened()


def test_stale_for_more_than_five_minutes():
    """S0-099: of what was found, and of what still has nobody."""
    recovered(seconds_to_detect=299)
    evaluate()
    assert "stale" not in opened()

    dead = Worker.objects.create(host="h", pid=1, ended_why="died", ended_at=Now())
    Worker.objects.update(heartbeat_at=Now() - timedelta(seconds=301))
    workflow = start("three")
    Workflow.objects.filter(pk=workflow.pk).update(status="running", wake_at=None, worker=dead)
    evaluate()

    alert = Alert.objects.get(rule__builtin="stale")
    assert alert.value > 300
    assert alert.details == {"stillStale": 1}


def test_recovery_mode_is_seen_when_more_than_ten_are_late():
    """S2-074, C25."""
    start_many("three", [{"tag": str(n)} for n in range(10)])
    Workflow.objects.update(wake_at=Now() - timedelta(minutes=19), due_at=Now() - timedelta(minutes=19))
    evaluate()
    assert "late" not in opened()

    start("three")
    Workflow.objects.filter(due_at__gt=Now() - timedelta(minutes=1)).update(wake_at=Now() - timedelta(minutes=1140))
    evaluate()

    alert = Alert.objects.get(rule__builtin="late")
    assert alert.rule_name == "Recovery mode detected"
    assert (alert.details["lateEvents"], alert.details["oldestEventAge"]) == (11, 1140)


def test_the_scheduler_appears_to_be_down_although_workers_stand_in():
    """S2-075, C24."""
    duties.run("sweep", "scheduled task")
    Duty.objects.update(began_at=Now() - timedelta(minutes=6))
    duties.run("sweep", "worker")

    evaluate()

    alert = Alert.objects.get(rule__builtin="scheduler_silent")
    assert alert.rule_name == "Scheduler appears to be down"
    assert alert.details["minutesSinceLastRun"] == 6.0
    assert alert.details["lastRun"].startswith("20")
    duties.run("sweep", "scheduled task")
    evaluate()
    assert "scheduler_silent" not in opened()


def test_no_worker_dead_letters_and_what_is_blocked():
    start_many("three", [{"tag": str(n)} for n in range(4)])
    failed, discarded, broken, blocked = Workflow.objects.order_by("pk")
    Workflow.objects.filter(pk__in=[failed.pk, discarded.pk]).update(status="failed", wake_at=None, finished_at=Now())
    Workflow.objects.filter(pk=discarded.pk).update(error={"message": "no", "discarded": {"by": "somebody"}})
    Workflow.objects.filter(pk=broken.pk).update(
        status="paused", pause_reason="suspended", wake_at=None, error={"message": "its steps cannot be read"}
    )
    Workflow.objects.filter(pk=blocked.pk).update(status="paused", pause_reason="blocked")
    AlertRule.objects.update(lasting=0)

    evaluate()

    assert opened() == {"no_worker", "dead_letters", "needs_people"}
    assert Alert.objects.get(rule__builtin="dead_letters").value == 1
    assert Alert.objects.get(rule__builtin="needs_people").details == {
        "held": 0,
        "blocked": 1,
        "beyondRepair": 1,
        "names": ["three"],
    }


def test_overdue_without_a_reason_is_an_alert(monkeypatch):
    """Due for long, a worker with this code and a free slot: nothing stands in the way."""
    Worker.objects.create(host="h", pid=1, knows={"three": [1, "f"]}, slots=4)
    start("three")
    Workflow.objects.update(wake_at=Now() - timedelta(minutes=5))

    duty = duties.run("wake", "worker")
    evaluate()

    assert (duty.found, duty.failed, duty.note["nudged"]) == (1, 1, 1)
    assert "overdue" in opened()


def test_what_has_a_reason_to_wait_is_not_overdue():
    start("three")
    Workflow.objects.update(wake_at=Now() - timedelta(minutes=5))

    duty = duties.run("wake", "worker")

    assert (duty.found, duty.skipped, duty.note) == (0, 1, {"reasons": ["three: no worker has this code"]})
    assert metrics.measure("overdue").value == 0

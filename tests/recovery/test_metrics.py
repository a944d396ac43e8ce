"""Roll-ups: what is kept equals what is there, however late and however often it is counted."""

import threading
import time
from datetime import UTC, timedelta

import pytest
from django.db import connection
from django.utils import timezone

from recovery import histogram, retention, rollup
from recovery.counts import summed
from recovery.models import MetricMinute
from recovery.queries.figures import SERIES, filled, series, span, whole
from recovery.queries.together import together
from recovery.ranges import Range
from tests.factories import RecoveryFactory, WorkerFactory, WorkflowFactory
from workflows.models import Workflow

pytestmark = pytest.mark.django_db


def ago(**away):
    return timezone.now() - timedelta(**away)


def last(**away):
    return Range("custom", ago(**away), timezone.now())


def midnight(moment):
    """Of its day in UTC."""
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def roll(budget=30.0):
    return rollup.roll_up("scheduled task", time.monotonic() + budget)


def ended(status="completed", minutes=10.0, took=1.0, **fields):
    """One that ended so long ago, having taken so many seconds."""
    at = ago(minutes=minutes)
    return WorkflowFactory(
        **{status: True}, finished_at=at, due_at=at - timedelta(seconds=took), wake_at=None, **fields
    )


def facts(counts):
    return {name: getattr(counts, name) for name in (*rollup.COUNTS, "took", "resume")}


def history():
    for minutes in (3, 10, 10, 45, 90, 60 * 26, 60 * 24 * 3, 60 * 24 * 20):
        ended(minutes=minutes)
    ended("failed", 10)
    ended("cancelled", 20, name="other")
    ended(minutes=30, recoveries=1, name="other")
    WorkflowFactory(running=True, started_at=ago(minutes=15), lateness=400)
    RecoveryFactory(recovered=True, settled_at=ago(minutes=12))
    RecoveryFactory(gave_up=True, settled_at=ago(minutes=13))
    RecoveryFactory(outcome="died_again", settled_at=ago(minutes=14))


@pytest.mark.parametrize(
    "away", [{"minutes": 15}, {"hours": 1}, {"hours": 24}, {"days": 7}, {"days": 30}, {"days": 60}]
)
def test_what_is_kept_equals_a_direct_count(away):
    history()
    over = last(**away)
    direct = summed(series(over))

    roll()

    assert MetricMinute.objects.exclude(name="").exists()
    assert facts(summed(series(over))) == facts(direct)


def test_the_figures_are_those_of_the_rows():
    """S3-092..S3-094: cases recovered, recoveries that failed, and how long it took until they ran again."""
    history()
    roll()

    counts = summed(series(last(hours=2)))

    assert (counts.completed, counts.rescued, counts.failed, counts.cancelled) == (6, 1, 1, 1)
    assert (counts.recovered, counts.unrecovered, counts.given_up, counts.late) == (1, 2, 1, 1)
    assert counts.started == Workflow.objects.count()
    assert counts.success == 6 / 7
    assert counts.pth("took", 0.5) == pytest.approx(1.25)
    assert 1.35 <= counts.pth("resume", 0.5) <= 1.5


def test_each_name_is_counted_for_itself():
    history()
    roll()

    other = summed(series(last(hours=2), scope="other"))

    assert (other.completed, other.cancelled, other.failed) == (1, 1, 0)


def test_the_minute_that_runs_is_counted_live():
    roll()
    ended(minutes=0)

    assert summed(series(last(minutes=15))).completed == 1
    assert not MetricMinute.objects.filter(completed__gt=0).exists()


def test_counting_again_changes_nothing():
    history()
    roll()
    before = list(MetricMinute.objects.order_by("grain", "minute", "name").values())

    roll()

    after = list(MetricMinute.objects.order_by("grain", "minute", "name").values())
    sampled = {"running", "waiting", "due", "oldest"}
    assert [
        {k: v for k, v in row.items() if k not in sampled} for row in after if row["minute"] <= before[-1]["minute"]
    ]
    assert {(r["grain"], r["minute"], r["name"], r["completed"]) for r in before} <= {
        (r["grain"], r["minute"], r["name"], r["completed"]) for r in after
    }


def test_what_commits_late_is_counted_by_the_next_run():
    roll()
    ended(minutes=3)

    roll()

    assert MetricMinute.objects.filter(grain=60, name="", completed=1).count() == 1


def test_what_was_revived_is_no_longer_counted_as_failed():
    one = ended("failed", 3)
    roll()
    Workflow.objects.filter(pk=one.pk).update(status="queued", finished_at=None, wake_at=timezone.now())

    roll()

    assert not MetricMinute.objects.filter(failed__gt=0).exists()


def test_whoever_is_killed_while_catching_up_leaves_the_rest_to_the_next(monkeypatch):
    """In bounded steps, each kept for itself."""
    ended(minutes=60 * 30)
    steps = iter([rollup._count, rollup._count])
    monkeypatch.setattr(rollup, "_count", lambda start, end: next(steps)(start, end))

    with pytest.raises(StopIteration):
        roll()
    reached = MetricMinute.objects.filter(grain=60, name="").latest("minute").minute
    monkeypatch.undo()
    roll()

    assert reached < ago(hours=12)
    assert MetricMinute.objects.filter(grain=60, name="").latest("minute").minute > ago(minutes=3)
    assert summed(series(last(days=2))).completed == 1


def test_a_run_whose_time_is_up_says_what_it_left():
    ended(minutes=60)

    assert roll(budget=-1).note == {"left": "65 min"}


@pytest.mark.django_db(transaction=True)
def test_two_at_once_count_as_one():
    history()
    over = last(hours=2)
    direct = facts(summed(series(over)))
    failures = []

    def run():
        try:
            roll()
        except Exception as error:
            failures.append(error)
        finally:
            connection.close()

    both = [threading.Thread(target=run) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()

    assert failures == []
    assert facts(summed(series(over))) == direct


def test_a_rescue_is_never_counted_as_a_workflow():
    """Its outcome may be the same word as an end."""
    for outcome in ("cancelled", "failed", "observed"):
        RecoveryFactory(outcome=outcome, settled_at=ago(minutes=10))

    counted = summed(series(last(hours=1)))

    assert (counted.cancelled, counted.failed, counted.recovered, counted.unrecovered) == (0, 0, 0, 0)


def test_the_days_of_a_long_range_are_read_as_days():
    for days in (1.5, 10, 20):
        ended(minutes=days * 24 * 60)
    roll()
    MetricMinute.objects.filter(grain__lt=86400, minute__lt=ago(days=5)).delete()

    assert summed(series(last(days=100))).completed == 3
    assert summed(series(last(days=30))).completed == 1  # in bars of half a day


def test_a_sum_takes_whole_days_and_the_hours_before_and_after_them():
    end = midnight(ago(days=1)) + timedelta(hours=9)
    over = Range("custom", end - timedelta(days=3, hours=2), end)  # from seven in the morning until nine
    for away in (timedelta(days=3, hours=1), timedelta(days=2), timedelta(hours=1)):
        ended(minutes=(timezone.now() - end + away).total_seconds() / 60)
    for outside in (timedelta(days=3, hours=4), -timedelta(hours=1)):
        ended(minutes=(timezone.now() - end + outside).total_seconds() / 60)
    roll()

    asked = whole(over)
    rows = together(asked.given(), series=SERIES)["series"]
    days = MetricMinute.objects.filter(grain=86400, minute__gte=over.start, minute__lt=midnight(end))
    MetricMinute.objects.filter(grain=3600, minute__in=[day.minute + timedelta(hours=9) for day in days]).delete()

    assert asked.given()["grain"] == 86400
    assert len(days) == 3
    assert summed(filled(asked, rows)).completed == 3
    assert summed(filled(asked, together(asked.given(), series=SERIES)["series"])).completed == 3


def test_while_no_day_is_kept_yet_hours_are_added_up():
    ended(minutes=60 * 24 * 3)
    roll()
    MetricMinute.objects.filter(grain=86400).delete()

    assert summed(series(last(days=60))).completed == 1


def test_what_commits_late_at_midnight_is_counted_in_its_day():
    today = midnight(timezone.now())
    one_to = (timezone.now() - today).total_seconds() / 60 + 1
    ended(minutes=one_to)
    rollup._count(today - timedelta(hours=1), today + timedelta(minutes=1))
    ended(minutes=one_to)

    rollup._count(today - timedelta(minutes=4), today + timedelta(minutes=2))

    assert MetricMinute.objects.get(grain=86400, name="").completed == 2


def test_every_minute_has_a_row_however_quiet_and_the_newest_a_sample():
    ended(minutes=20)
    WorkflowFactory(running=True)
    WorkflowFactory()
    roll()

    rows = MetricMinute.objects.filter(grain=60, name="").order_by("minute")

    assert len(rows) >= 20
    newest = rows.last()
    assert (newest.running, newest.waiting, newest.due) == (1, 1, 1)
    assert newest.oldest > 0


def test_figures_are_forgotten_after_a_year_and_a_bit():
    for days in (399, 401):
        for grain in (60, 3600, 86400):
            MetricMinute.objects.create(grain=grain, minute=ago(days=days))

    tally = retention.forget("scheduled task", time.monotonic() + 10)

    assert tally.note["figures"] == 3
    assert MetricMinute.objects.count() == 3


def test_percentiles_are_read_between_the_bounds():
    assert histogram.percentile([0, 10, 0], 0.5, (1, 2)) == 1.5
    assert histogram.percentile([0, 0, 4], 0.5, (1, 2)) == 2
    assert histogram.percentile([0, 0, 0], 0.5, (1, 2)) is None
    assert histogram.percentile(None, 0.5, (1, 2)) is None


def test_a_month_is_few_buckets():
    assert len(span(last(days=30)).moments) <= 120
    assert len(span(last(days=30), twice=True).moments) <= 240


def test_workers_mark_the_charts(client, admin_client):
    WorkerFactory(dead=True, host="host-9", last_seen_at=ago(minutes=5), started_at=ago(days=2))

    figure = admin_client.get("/charts/throughput.json?range=1h").json()

    assert "host-9 died" in [word["text"] for word in figure["layout"]["annotations"]]

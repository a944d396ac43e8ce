"""One row per duty in django-q2, as declared, whatever happens to it."""

from datetime import timedelta

import pytest
from django.utils import timezone
from django_q.models import OrmQ, Schedule
from django_q.scheduler import scheduler

from recovery import duties, schedules
from recovery.duties import DUTIES
from recovery.models import Duty

pytestmark = pytest.mark.django_db(transaction=True)


def ours():
    return Schedule.objects.filter(name__startswith="rekindle:")


@pytest.fixture(autouse=True)
def just_now(transactional_db):
    """The rows are as old as the test database, and their next run with them: by now it may be astray."""
    ours().update(next_run=timezone.now())


def test_after_migrate_every_duty_has_a_schedule_every_minute():
    """S2-022, S3-072. The test database has just been migrated."""
    assert sorted(ours().values_list("name", flat=True)) == sorted(f"rekindle:{name}" for name in DUTIES)
    assert set(ours().values_list("schedule_type", "minutes", "repeats")) == {("I", 1, -1)}


def test_django_q2_makes_tasks_of_them_that_call_the_duty():
    ours().update(next_run=timezone.now() - timedelta(seconds=1))

    scheduler()

    tasks = [row.task for row in OrmQ.objects.all()]
    assert sorted(task["args"][0] for task in tasks) == sorted(DUTIES)
    assert {task["func"] for task in tasks} == {"recovery.duties.scheduled"}
    assert all(task["timeout"] <= 55 and task["ack_failure"] and not task["save"] for task in tasks)


@pytest.mark.parametrize(
    "harm",
    [
        {"func": "nowhere.nothing"},
        {"args": "(((", "kwargs": "not python"},
        {"schedule_type": "O", "repeats": 0},
        {"minutes": 600},
        {"cluster": "another"},
        {"hook": "os.system", "intended_date_kwarg": "when"},
        {"next_run": None},
        {"next_run": timezone.now() - timedelta(days=3)},
        {"next_run": timezone.now() + timedelta(days=3)},
    ],
)
def test_a_malformed_row_is_put_right(harm):
    ours().filter(name="rekindle:sweep").update(**harm)

    assert schedules.synchronise() == 1

    row = Schedule.objects.get(name="rekindle:sweep")
    assert (row.func, row.args, row.hook, row.cluster) == ("recovery.duties.scheduled", "'sweep'", None, None)
    assert (row.schedule_type, row.minutes, row.repeats, row.intended_date_kwarg) == ("I", 1, -1, None)
    assert abs(row.next_run - timezone.now()) < timedelta(minutes=2)
    assert schedules.synchronise() == 0


def test_a_deleted_and_a_doubled_row_are_put_right_by_the_duty():
    ours().filter(name="rekindle:wake").delete()
    Schedule.objects.create(name="rekindle:sweep", func="x.y")
    Schedule.objects.create(name="rekindle:formerly", func="x.y")

    duties.run("schedules", "worker")

    assert sorted(ours().values_list("name", flat=True)) == sorted(f"rekindle:{name}" for name in DUTIES)
    assert (Duty.objects.get().found, Duty.objects.get().recovered) == (3, 3)


def test_nobody_elses_schedule_is_touched():
    Schedule.objects.create(name="theirs", func="their.task", minutes=7, next_run=timezone.now() - timedelta(days=9))
    before = Schedule.objects.filter(name="theirs").values().get()

    schedules.synchronise()

    assert Schedule.objects.filter(name="theirs").values().get() == before


def test_a_next_run_that_is_on_its_way_is_left_alone():
    soon = timezone.now() + timedelta(seconds=40)
    ours().update(next_run=soon)

    assert schedules.synchronise() == 0

    assert set(ours().values_list("next_run", flat=True)) == {soon}


def test_a_named_cluster_gets_the_schedules(settings):
    settings.REKINDLE = {"CLUSTER": "watch"}

    schedules.synchronise()

    assert set(ours().values_list("cluster", flat=True)) == {"watch"}

"""How far behind we are, said while it is worth saying."""

from datetime import timedelta

import pytest
from django.utils import timezone

from recovery.backlog import MANY, backlog
from recovery.models import MetricMinute
from recovery.queries import backlog as queries
from tests.factories import PolicyFactory, WorkflowFactory, ago


@pytest.mark.parametrize(
    ("due", "oldest", "a_minute", "words"),
    [
        (1204, 60, 310, "1,204 due, 310 a minute, about 3 min"),
        (50, 10, 3000, "50 due, 3,000 a minute, about 1.0 s"),
        (MANY, 600, 1000, "10,000+ due, 1,000 a minute, more than 10 min"),
        (80, 240, 0, "80 due, the oldest for 4 min; none was done in the last minutes"),
        (80, 240, None, "80 due, the oldest for 4 min; none was done in the last minutes"),
    ],
)
def test_a_backlog_is_one_sentence(due, oldest, a_minute, words):
    assert backlog(due, oldest, a_minute).words == words


@pytest.mark.parametrize(("due", "oldest"), [(0, None), (49, 600), (5000, 9)])
def test_a_few_or_a_burst_are_no_backlog(due, oldest):
    assert backlog(due, oldest, 300) is None


@pytest.mark.django_db
def test_it_is_read_from_what_is_due_and_from_the_kept_minutes(monkeypatch):
    monkeypatch.setattr("recovery.backlog.WORTH_SAYING", 3)
    this = timezone.now().replace(second=0, microsecond=0)
    for minutes, name, done in ((1, "", 30), (2, "", 60), (9, "", 999), (1, "three", 6)):
        MetricMinute.objects.create(minute=this - timedelta(minutes=minutes), name=name, completed=done)
    WorkflowFactory.create_batch(3, wake_at=ago(minutes=2))
    WorkflowFactory(wake_at=ago(hours=-1))
    PolicyFactory(name="stopped", paused=True)
    WorkflowFactory.create_batch(3, name="stopped", wake_at=ago(hours=2))

    everything, named = queries.now(), queries.now("three")

    assert (everything.due, everything.a_minute) == (3, 30)
    assert (named.due, named.a_minute) == (3, 2)
    assert queries.now("other") is None

"""A day of downtime, a thousand missed: everything is taken, oldest first, though a worker dies over it."""

from collections import Counter
from datetime import timedelta
from itertools import groupby, pairwise
from operator import attrgetter

import pytest
from django.utils import timezone

from workflows import start_many
from workflows.models import Worker, Workflow

from .conftest import until
from .test_killed import all_ended, kill

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_thousand_missed_in_a_day_are_taken_oldest_first_although_a_worker_dies_over_it(workers, ledger):
    """S2-001..S2-007, S2-020, S2-025, S2-047..S2-049, S2-080..S2-082, C17, C22; I8."""
    ids = start_many("three", [{"tag": f"w{n}"} for n in range(1000)], at=timezone.now() + timedelta(days=1))
    late = [Workflow(pk=pk, due_at=ago, wake_at=ago) for n, pk in enumerate(ids) for ago in [days_ago(n * 7919 % 1440)]]
    Workflow.objects.bulk_update(late, ["due_at", "wake_at"], batch_size=500)

    workers.start(concurrency=4)
    until(lambda: len(ledger()) > 300, "the catching up is under way")
    kill(Worker.objects.get(ended_at=None))

    until(all_ended, "all have ended", seconds=120)
    assert Workflow.objects.filter(status="completed").count() == 1000
    done = Counter(ledger())
    assert len(done) == 3000
    assert sum(count - 1 for count in done.values()) <= 4  # what was open when it died
    claims = groupby(Workflow.objects.order_by("started_at"), key=attrgetter("started_at"))
    taken = [[one.due_at for one in claim] for _, claim in claims]
    assert all(max(earlier) < min(later) for earlier, later in pairwise(taken))


def days_ago(minutes):
    return timezone.now() - timedelta(minutes=minutes + 1)

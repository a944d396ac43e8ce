"""The databases that `make bench-pages` fills keep the promises of the schema, whatever columns it gains."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from recovery.models import Recovery
from tests.bench.pages import around
from tests.bench.pages.stories import LONG, Stories
from tests.bench.pages.world import SMALL
from workflows.models import Event, Step, Workflow

TINY = replace(SMALL, workflows=400, states=dict.fromkeys(SMALL.states, 5), recoveries=20)


@pytest.fixture
def filled(outside):
    url, now = outside["DATABASE_URL"], timezone.now()
    around.workers(url, TINY, now)
    around.audit(url, TINY, now)
    stories = Stories(url, TINY)
    stories.write(now - timedelta(days=29), now)
    stories.go_on(now, now + timedelta(seconds=10), 40)
    stories.close()


@pytest.mark.usefixtures("filled")
def test_a_filled_database_has_every_state_and_a_diary_for_each():
    assert Workflow.objects.count() == 440
    assert {*Workflow.objects.values_list("status", flat=True)} == {
        "pending", "queued", "running", "paused", "completed", "failed", "cancelled",
    }  # fmt: skip
    assert Event.objects.count() == 5 * 439 + 2 * LONG + 2
    assert Recovery.objects.filter(outcome="pending").count() == 5
    assert Workflow.objects.filter(worker__ended_at=None, worker__isnull=False).count() == 5
    assert Step.objects.filter(status="waiting").exclude(basket="").count() == 5


@pytest.mark.usefixtures("filled")
def test_its_ids_sort_by_the_time_as_those_of_the_engine_do():
    milliseconds = [
        int(at.timestamp() * 1000) for at in Workflow.objects.order_by("pk").values_list("created_at", flat=True)
    ]

    assert milliseconds == sorted(milliseconds)

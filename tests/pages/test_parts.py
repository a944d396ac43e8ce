"""The small things every page is made of."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from recovery import sparkline
from recovery.ranges import Range, asked
from recovery.templatetags import rekindle as tags
from recovery.words import distance


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "now"), (-0.9, "now"), (-48, "48 s ago"), (61, "in 1 min"), (-7200, "2 h ago"), (-200_000, "2 d ago")],
)
def test_a_moment_is_said_by_its_distance(seconds, said):
    assert distance(seconds) == said


def test_a_time_shows_the_distance_and_carries_the_moment():
    at = timezone.now() - timedelta(minutes=3)

    shown = tags.ago(at)

    assert ">3 min ago</time>" in shown
    assert f'title="{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"' in shown


def test_what_runs_ticks_and_what_ended_stands():
    since = timezone.now() - timedelta(seconds=48)

    assert 'data-as="duration">48 s</time>' in tags.lasting(since)
    assert tags.lasting(since, since + timedelta(seconds=12)) == "12 s"
    assert tags.lasting(None) == "–"


def test_hostile_words_are_escaped():
    assert "<script>" not in tags.state("running", "<script>")
    assert "<script>" not in tags.copy('"><script>')


def test_a_sparkline_fills_its_place():
    assert sparkline.path([0, 5, 10]) == "M0.0 24.0L60.0 13.0L120.0 2.0"
    assert sparkline.area([0, 5, 10]).endswith("L120 26L0 26Z")


@pytest.mark.parametrize("values", [[], [1]])
def test_a_sparkline_of_nothing_is_empty(values):
    assert sparkline.path(values) == sparkline.area(values) == ""


def test_a_sparkline_of_zeros_lies_flat():
    assert sparkline.path([0, 0]) == "M0.0 24.0L120.0 24.0"


def test_a_custom_range_is_utc_unless_it_says_otherwise():
    span = asked({"from": "2026-01-01T09:00", "to": "2026-01-01T12:00:00+02:00"})

    assert span == Range("custom", datetime(2026, 1, 1, 9, tzinfo=UTC), datetime(2026, 1, 1, 10, tzinfo=UTC))
    assert span.step == timedelta(minutes=1)

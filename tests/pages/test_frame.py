"""What surrounds every page."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from recovery import rail, strips
from recovery.models import Duty
from workflows.models import Policy, Worker


def test_the_rail_shows_only_pages_that_exist(viewer, monkeypatch):
    monkeypatch.setattr(rail, "PAGES", (rail.Page("workflows", "Workflows", "w"), rail.Page("nowhere", "Nowhere", "n")))

    page = viewer.get("/workflows/").content.decode()

    assert 'id="rail-workflows"' in page
    assert "Nowhere" not in page


def test_a_badge_says_what_it_counts(viewer, monkeypatch):
    three = "SELECT FROM generate_series(1, 3)"
    monkeypatch.setattr(rail, "PAGES", (rail.Page("workflows", "Workflows", "w", three, "orphan", "orphans"),))

    page = viewer.get("/workflows/").content.decode()

    assert '<b class="count orphan">3<span class="sr"> orphans</span></b>' in page


def test_a_badge_does_not_count_for_ever(monkeypatch, db):
    many = f"SELECT FROM generate_series(1, {rail.MOST})"
    monkeypatch.setattr(rail, "PAGES", (rail.Page("workflows", "Workflows", "w", many),))

    assert rail.entries("workflows")[0].count == "99+"


def test_the_frame_says_who_one_is(operator):
    page = operator.get("/workflows/").content.decode()

    assert "<b>otto</b>" in page
    assert "operator" in page
    assert 'action="/logout/"' in page


def test_a_range_keeps_the_rest_of_the_address_and_drops_the_place_in_it(viewer):
    page = viewer.get("/workflows/", {"view": "failed", "range": "1h", "before": ""})

    choices = {choice.word: choice for choice in page.context["frame"].ranges}
    assert choices["1 h"].on
    assert choices["24 h"].url == "?view=failed&range=24h"


@pytest.mark.parametrize(
    "query", ["range=nonsense", "from=nonsense", "from=2026-01-02&to=2026-01-01", "from=0001-01-01"]
)
def test_a_range_that_means_nothing_is_not_found(viewer, query):
    assert viewer.get(f"/workflows/?{query}").status_code == 404


def test_the_rail_is_asked_again_and_answers_only_news(viewer, worker, workflow, monkeypatch):
    all_there_are = "SELECT FROM rekindle_workflow"
    monkeypatch.setattr(rail, "PAGES", (rail.Page("workflows", "Workflows", "w", all_there_are),))

    first = viewer.get("/rail?here=workflows")
    second = viewer.get("/rail?here=workflows", headers={"If-None-Match": first["ETag"]})
    workflow()
    third = viewer.get("/rail?here=workflows", headers={"If-None-Match": first["ETag"]})

    assert [first.status_code, second.status_code, third.status_code] == [200, 304, 200]
    assert second.content == b""


def test_all_is_well_and_nothing_is_said(worker):
    assert strips.strips() == []


def test_without_a_worker_it_says_so(viewer):
    assert "No worker is alive" in viewer.get("/workflows/").content.decode()


def test_where_nobody_is_left_to_declare_the_dead_dead_it_says_so_all_the_same(worker):
    """S2-075; faults: all workers, scheduler and web killed: the page that comes back first tells the truth."""
    Worker.objects.update(heartbeat_at=Now() - timedelta(minutes=7))
    Duty.objects.create(name="sweep", ran_by="scheduled task", began_at=Now() - timedelta(minutes=6, seconds=5))

    no_worker, no_scheduler = (str(strip.verdict) for strip in strips.strips())

    assert no_worker == "No worker is alive: nothing runs until one starts."
    assert no_scheduler == (
        "Scheduler appears to be down: last run 6 min ago (expected every minute). "
        "Nobody looks for the dead, and nobody judges alerts."
    )


def test_a_wrong_clock_of_the_web_server_declares_no_scheduler_down(worker, monkeypatch):
    """Faults: app clocks wrong by 10 minutes, either way."""
    Duty.objects.create(name="sweep", ran_by="scheduled task")
    wrong = timezone.now() + timedelta(minutes=10)
    monkeypatch.setattr("django.utils.timezone.now", lambda: wrong)

    assert strips.strips() == []


def test_a_silent_scheduler_is_named(worker):
    Duty.objects.create(
        name="sweep", ran_by="scheduled task", began_at=timezone.now() - timedelta(minutes=6, seconds=5)
    )

    (strip,) = strips.strips()

    said = (
        "Scheduler appears to be down: last run 6 min ago (expected every minute). Workers have taken over its duties."
    )
    assert (str(strip.verdict), strip.page) == (said, "workers")


def test_a_paused_name_is_told_with_who_and_when(viewer, worker):
    Policy.objects.create(name="order", paused=True, changed_by="otto")

    page = viewer.get("/workflows/").content.decode()

    assert "order is paused: new work is accepted and not started, by otto, for <time" in page

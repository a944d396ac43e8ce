"""The overview: what needs attention, in sentences; how things are, in few questions."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from recovery import rollup
from recovery.models import AlertRule
from tests.factories import (
    AlertFactory,
    AuditEntryFactory,
    DutyFactory,
    PolicyFactory,
    RecoveryFactory,
    WorkerFactory,
    WorkflowFactory,
)

HTMX = {"HX-Request": "true"}


def text(response):
    return response.content.decode()


@pytest.fixture
def a_day(db):
    """Some of everything."""
    worker = WorkerFactory(host="host-1", knows={"order": [1, "f"], "three": [1, "f"]})
    for _ in range(3):
        WorkflowFactory(completed=True)
    WorkflowFactory(failed=True, name="invoice", error={"type": "PaymentTimeout", "message": "no answer"})
    WorkflowFactory(running=True, worker=worker, name="order")
    WorkflowFactory(blocked=True, name="payout", version=3)
    rescue = WorkflowFactory(released=True, name="order", key="ORD-48121")
    dead = WorkerFactory(dead=True, host="host-2", pid=812)
    RecoveryFactory(
        workflow_id=rescue.pk,
        workflow_name="order",
        worker=dead.pk,
        worker_name=str(dead),
        step="charge_card",
        plan={"kept": 4},
        last_seen_at=timezone.now() - timedelta(seconds=3),
    )
    RecoveryFactory(recovered=True, worker=dead.pk, worker_name=str(dead))
    AlertFactory(resolved=True)
    AuditEntryFactory(reason="memory raised", subject_name="invoice")
    DutyFactory()


def test_the_way_in_is_the_overview(viewer, a_day):
    page = text(viewer.get("/"))

    assert '<a id="rail-overview" href="/"' in page
    assert (
        page.index("Needs attention")
        < page.index('class="tiles"')
        < page.index("data-chart")
        < page.index("By workflow")
    )


def test_an_orphan_is_told_in_words(viewer, a_day):
    page = text(viewer.get("/"))

    assert "Its worker <code>host-2:812</code> died <time" in page
    assert "recovery 1 of 3 starts now; 0 steps are kept" in page
    assert "It was lost after <code>charge_card</code>" in page


def test_only_who_may_act_is_offered_recover(viewer, operator, a_day):
    assert "/ask/recover" not in text(viewer.get("/"))
    assert "/ask/recover" in text(operator.get("/"))


def test_tiles_count_the_range_and_lead_to_their_lists(viewer, a_day):
    shown = {tile.word: tile for tile in viewer.get("/?range=1h").context["seen"].tiles}

    assert [shown[word].number for word in ("Running", "Completed", "Failed", "Recovered")] == ["1", "3", "1", "1"]
    assert shown["Completed"].sub == "75 %"
    assert 'href="/workflows/?view=failed"' in text(viewer.get("/"))


def test_a_tile_with_a_rule_shows_its_threshold_and_leads_to_it(viewer, a_day):
    AlertRule.objects.filter(metric="recovery.triggered").delete()
    rule = AlertRule.objects.create(name="many", metric="recovery.triggered", threshold=10, value=7)

    page = viewer.get("/")

    assert "7 of 10 per hour" in text(page)
    assert f'href="/recovery/#rule-{rule.pk}"' in page.content.decode()


def test_a_backlog_has_a_forecast(viewer, worker):
    for _ in range(60):
        WorkflowFactory(wake_at=timezone.now() - timedelta(minutes=2))
    for _ in range(60):
        WorkflowFactory(completed=True, finished_at=timezone.now() - timedelta(minutes=3))
    rollup.roll_up("worker", time.monotonic() + 10)

    shown = {tile.word: tile for tile in viewer.get("/").context["seen"].tiles}
    assert shown["Waiting"].sub == "60 due, 12 a minute, about 5 min"


def test_names_tell_their_failures_and_last_error(viewer, a_day):
    names = {one.counts.name: one for one in viewer.get("/").context["seen"].names}

    assert (names["invoice"].counts.failed, names["invoice"].error) == (1, "PaymentTimeout")
    assert names["order"].running == 1
    assert names["three"].counts.success == 1


def test_what_happened_lately_is_told(viewer, a_day):
    page = text(viewer.get("/"))

    assert "1 of 2 workflows running again after <b>host-2:812</b> died" in page
    assert "<b>ada</b> cancelled invoice" in page
    assert " resolved" in page
    assert "<b>host-1:" in page


def test_the_page_and_its_polls_ask_little(viewer, a_day, django_assert_max_num_queries):
    with django_assert_max_num_queries(12):
        viewer.get("/")
    with django_assert_max_num_queries(6):
        viewer.get("/", headers=HTMX)
    with django_assert_max_num_queries(6):
        viewer.get("/charts/throughput.json")


def test_a_poll_holds_no_chart_and_no_frame(viewer, a_day):
    poll = text(viewer.get("/?range=1h", headers=HTMX))

    assert "data-chart" not in poll
    assert "<html" not in poll
    assert 'id="below" hx-swap-oob="morph"' in poll


def test_a_poll_without_news_is_a_304(viewer, worker, monkeypatch):
    monkeypatch.setattr(
        "recovery.queries.together.ANSWERING", "1e6::float8"
    )  # so that the latency is nothing, each time
    first = viewer.get("/", headers=HTMX)

    assert viewer.get("/", headers=HTMX | {"If-None-Match": first["ETag"]}).status_code == 304


def test_nothing_yet_teaches(viewer, worker):
    page = text(viewer.get("/"))

    assert "No workflows yet" in page
    assert "start(&quot;order&quot;" in page or 'start("order"' in page


def test_all_is_well_is_said(viewer, worker):
    WorkflowFactory(completed=True)
    DutyFactory()

    assert "All is well" in text(viewer.get("/"))


def test_a_name_that_is_paused_or_watched_only_is_on_every_page(viewer, worker):
    PolicyFactory(name="order", closed=True)
    PolicyFactory(name="invoice", mode="observe")

    page = text(viewer.get("/"))

    assert "order is paused" in page
    assert "invoice is in mode observe" in page


@pytest.mark.parametrize("chart", ["throughput", "resume", "duration", "queue"])
@pytest.mark.parametrize("form", ["json", "csv", "html"])
def test_every_chart_has_a_figure_a_table_and_a_csv(viewer, a_day, chart, form):
    rollup.roll_up("worker", time.monotonic() + 10)

    assert viewer.get(f"/charts/{chart}.{form}?range=1h").status_code == 200


def test_a_range_that_means_nothing_is_not_found(viewer):
    assert viewer.get("/?range=nonsense").status_code == 404

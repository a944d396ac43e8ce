"""Bulk with stop: everything that matches is selected, a batch follows it, and one press stops it."""

import time

import pytest

from recovery import batches
from recovery.batches.carrying import _carry as carry
from recovery.models import Batch
from tests.factories import BatchFactory, BatchItemFactory, WorkflowFactory
from workflows.models import Workflow

from .test_look import AXE, DESK, PHONE, SMALL, WIDE


def test_bulk_with_stop(sit_down):
    for _ in range(60):
        WorkflowFactory(name="noise")
    WorkflowFactory(name="order")
    page = sit_down("/workflows/?q=name:noise")

    assert page.locator("#bulk button:has-text('Cancel…')").is_disabled()
    page.check("[data-select] >> nth=0")
    assert page.locator("[data-selected]").inner_text() == "1 selected"
    page.check("#bulk >> text=select all 60 matching")
    page.click("#bulk button:has-text('Cancel…')")
    page.fill("#reason", "a runaway import")
    page.fill("#number", "60")
    page.click("button.do:has-text('Cancel 60 workflows')")
    page.wait_for_url("**/batches/*/")
    page.wait_for_selector("#verdict .state.queued")

    batch = Batch.objects.get()
    for pk in batch.items.order_by("workflow_id").values_list("pk", flat=True)[:7]:
        carry(batch, pk)
    page.wait_for_selector("[role=progressbar][aria-valuenow='7']")
    page.click("#stop")
    page.wait_for_selector("#verdict .state.paused")

    assert batches.carry_on(time.monotonic() + 60) == {}
    assert Workflow.objects.filter(status="cancelled").count() == 7
    assert page.locator(".notice:has-text('Stopped: 53 of 60 were not reached.')").count() == 1
    assert page.locator("#stop").count() == 0
    page.click("#r-left")
    assert page.locator("#items .state:has-text('Not reached')").count() == 50
    assert page.evaluate("csp") == []


def test_unticking_one_takes_all_back(sit_down):
    for _ in range(3):
        WorkflowFactory()
    page = sit_down()

    page.check("#bulk >> text=select all 3 matching")
    assert page.locator("[data-select]:checked").count() == 3
    page.uncheck("[data-select] >> nth=1")

    assert page.locator("#bulk [name=all]").is_checked() is False
    assert page.locator("[data-selected]").inner_text() == "2 selected"


def test_without_javascript_a_batch_is_begun_and_stopped(sit_down):
    WorkflowFactory()
    page = sit_down(java_script_enabled=False)

    page.check("#bulk >> text=select all 1 matching")
    page.click("#bulk button:has-text('Fail…')")
    page.fill("#reason", "a duplicate")
    page.click("button.do:has-text('Fail 1 workflow')")
    page.click("#stop")

    assert page.locator(".notice:has-text('Stopped: 1 of 1 were not reached.')").count() == 1
    assert Workflow.objects.get().status == "queued"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pages_of_batches_are_accessible_and_fit(sit_down, theme):
    batch = BatchFactory(under_way=True, total=4, skipped=1, failed=1, chosen="name:" + "rather-long-" * 12)
    for result in ("done", "skipped", "failed", ""):
        BatchItemFactory(batch=batch, result=result, workflow_key="long" * 40, sentence="no-space-in-here" * 12)
    WorkflowFactory(failed=True)

    page = sit_down("/batches/", color_scheme=theme, viewport=DESK)
    for path in ("/batches/", f"/batches/{batch.pk}/", "/workflows/ask/recover?all=yes"):
        page.goto(path)
        page.set_viewport_size(DESK)
        assert [found["id"] for found in page.evaluate(f"{AXE}; axe.run()")["violations"]] == [], path
        for size in (DESK, PHONE, SMALL):
            page.set_viewport_size(size)
            assert page.evaluate(WIDE) == [], (path, size)
        assert page.evaluate("csp") == []

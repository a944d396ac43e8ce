"""The pages of the watch: overview, recovery and workers, after a death, in both themes, on a desk and on a phone."""

import pytest

from recovery.models import AuditEntry
from tests.browser.test_look import AXE, DESK, PHONE, SMALL, WIDE
from tests.factories import DutyFactory, RecoveryFactory, StepFactory, WorkerFactory, WorkflowFactory
from workflows.models import Workflow

LONG = "rather-long-" * 12


@pytest.fixture
def after_a_death(transactional_db) -> Workflow:
    """One came back, one was given up, one waits for somebody, one is still held by the dead."""
    dead = WorkerFactory(dead=True, host="host-2", pid=812)
    of = {"worker": dead.pk, "worker_name": str(dead), "workflow_key": LONG}
    RecoveryFactory(recovered=True, step=LONG, in_step=True, plan={"kept": 2, "again": [{"name": LONG}]}, **of)
    RecoveryFactory(gave_up=True, **of)
    given_up = {"type": "RecoveryFailed", "message": LONG, "open": ["render"]}
    WorkflowFactory(failed=True, name="export", key=LONG, error=given_up, recovery_attempts=3)
    for _ in range(2):
        failed = WorkflowFactory(failed=True, error={"type": "StepFailed", "message": "step send failed: no answer"})
        StepFactory(workflow=failed, name="send", status="failed", error={"type": "Timeout", "message": LONG})
    WorkflowFactory(pended=True, basket="crash_review", name=f"payout-{LONG}"[:100])
    DutyFactory(name="sweep", found=3, recovered=2, failed=1)
    return WorkflowFactory(running=True, worker=dead, name="order", key="ORD-1")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/?range=1h", "/recovery/?range=1h", "/workers/", "/recovery/sweep"])
def test_a_page_of_the_watch_is_accessible_and_fits(sit_down, after_a_death, path, theme):
    page = sit_down(path, color_scheme=theme, viewport=DESK)
    if "range" in path:
        page.wait_for_selector(".main-svg")

    assert [found["id"] for found in page.evaluate(f"{AXE}; axe.run()")["violations"]] == []
    for size in (DESK, PHONE, SMALL):
        page.set_viewport_size(size)
        assert page.evaluate(WIDE) == [], size
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), size
    assert page.evaluate("csp") == []


def test_an_operator_asks_what_a_sweep_would_do_and_has_it_done(sit_down, after_a_death):
    page = sit_down("/recovery/")
    page.click("#sweep")
    page.wait_for_selector("#foreseen >> text=order ORD-1 would run again, recovery 1 of 3")

    page.click("#dialog button.do")

    page.wait_for_selector(".toast:has-text('gave back 1')")
    page.wait_for_selector("#recoveries tr:has-text('ORD-1')")
    after_a_death.refresh_from_db()
    assert after_a_death.worker is None
    assert AuditEntry.objects.get().act == "sweep"

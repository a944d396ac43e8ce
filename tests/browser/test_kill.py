"""Kill this worker: pressed on the page, it kills a real process, and the page shows what comes of it."""

from collections import Counter

import pytest

from project import descent
from recovery import killing
from recovery.models import AuditEntry
from tests.crash.conftest import ledger, until, workers  # noqa: F401
from workflows import start
from workflows.models import Event, Workflow


@pytest.fixture
def offered(monkeypatch):
    """As `up` does it: whoever descends from this process may be killed."""
    monkeypatch.setenv(descent.TOLD, "")
    descent.tell()
    monkeypatch.setattr(killing, "may_kill", [descent.is_of_this_up])


@pytest.fixture
def held(offered, workers, ledger):  # noqa: F811
    """Two real workers; one of them is in the second of three steps."""
    workers.start(processes=2)
    one = start("slow", {"tag": "w", "seconds": 3}, key="ORD-1")
    begun = Event.objects.filter(workflow=one, type="step.started", step="s1")
    until(begun.exists, "the second step has begun, and that is told")
    return Workflow.objects.select_related("worker").get(pk=one.pk)


def ended(one):
    return Workflow.objects.filter(pk=one.pk, finished_at__isnull=False).exists()


def test_a_worker_killed_on_the_page_is_seen_dying_and_its_work_going_on(sit_down, held, ledger):  # noqa: F811
    worker = held.worker
    page = sit_down("/workers/")
    page.click(f"#kill-{worker.pk}")
    page.wait_for_selector("#dialog >> text=1 step kept")

    page.click("#dialog button.do")

    page.wait_for_selector("#rail-recovery .count")
    left = f"#ended #k-{worker.pk} .went li:has-text('ORD-1')"
    page.wait_for_selector(f"{left}:has-text('Running again')")
    assert "1 step kept" in page.text_content(left)
    page.click(f"{left} a")
    page.wait_for_selector("text=Running again")
    for drawn in (".broken", ".mark.death", ".mark.recovery", ".bar.kept"):
        page.wait_for_selector(drawn, state="attached")

    until(lambda: ended(held), "it has ended")
    held.refresh_from_db()
    assert (held.status, held.recoveries) == ("completed", 1)
    assert Counter(ledger())["w:0:begun"] == 1
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.act, entry.subject, entry.before) == ("otto", "kill", "worker", {"held": 1})
    assert page.evaluate("csp") == []


def test_without_scripts_it_is_a_page_and_a_sentence(sit_down, held):
    page = sit_down("/workers/", java_script_enabled=False)

    page.click(f"#kill-{held.worker.pk}")
    page.click("button.do")

    assert f"Killed {held.worker}, which held 1 workflow." in page.text_content(".notice")
    until(lambda: ended(held), "it has ended")

"""A page that stays open: it follows what happens and never takes anything out of somebody's hands."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

from tests.factories import NoteFactory
from workflows.models import Workflow


def end(workflow: Workflow) -> None:
    Workflow.objects.filter(pk=workflow.pk).update(status="failed", wake_at=None, finished_at=timezone.now())


def test_a_row_follows_and_keeps_the_focus(sit_down, workflow):
    one = workflow("queued")
    page = sit_down()
    page.keyboard.press("j")

    end(one)
    page.wait_for_selector("#list .state.failed")

    assert page.evaluate("document.activeElement.id") == f"w-{one.pk}"


def test_selected_text_holds_the_page_and_stays_selected(sit_down, workflow):
    one = workflow("queued", key="ORD-1")
    page = sit_down()
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.c-key .mono'))")
    page.wait_for_selector("text=Held")

    end(one)
    page.wait_for_timeout(900)
    assert page.locator("#list .state.failed").count() == 0
    assert page.evaluate("String(getSelection())") == "ORD-1"

    page.evaluate("getSelection().removeAllRanges()")
    page.wait_for_selector("#list .state.failed")


@pytest.mark.parametrize("window", [{}, {"viewport": {"width": 390, "height": 844}}])
def test_new_rows_wait_until_they_are_asked_for_and_nothing_jumps(sit_down, workflow, window):
    old = workflow("queued")
    page = sit_down(**window)
    place = page.locator(f"#w-{old.pk}").bounding_box()

    new = workflow("queued")
    page.wait_for_selector("text=1 new — show")
    assert page.locator(f"#w-{old.pk}").bounding_box() == place

    page.click("text=1 new — show")
    page.wait_for_selector(f"#w-{new.pk}")


def test_when_the_session_is_over_the_page_says_so_and_stays(sit_down, workflow):
    workflow("queued", key="ORD-1")
    page = sit_down()

    Session.objects.all().delete()
    page.wait_for_selector("#contact:has-text('Your session is over')")

    assert page.locator("text=ORD-1").count() == 1
    assert page.locator("input[name=password]").count() == 0


def test_when_the_server_is_away_the_last_page_stays_and_comes_back(sit_down, workflow):
    workflow("queued", key="ORD-1")
    page = sit_down()

    page.context.set_offline(True)
    page.wait_for_selector("#contact:has-text('trying again')")
    assert page.locator("text=ORD-1").count() == 1

    page.context.set_offline(False)
    page.wait_for_selector("#contact", state="hidden")
    page.wait_for_selector("text=Live")


def test_a_paused_page_asks_for_nothing(sit_down, workflow):
    one = workflow("queued")
    page = sit_down()
    page.keyboard.press("p")
    page.wait_for_selector("[data-live-word]:has-text('Paused')")

    end(one)
    page.wait_for_timeout(900)

    assert page.locator("#list .state.failed").count() == 0


def test_the_page_of_a_name_follows_and_leaves_what_is_typed_alone(sit_down, workflow):
    one = workflow("queued")
    page = sit_down("/names/order/")
    page.wait_for_selector("#wrong:has-text('Nothing failed')")
    page.wait_for_selector(".charts .main-svg")

    Workflow.objects.filter(pk=one.pk).update(
        status="failed",
        wake_at=None,
        finished_at=timezone.now(),
        error={"type": "Refused", "message": "no such customer"},
    )
    page.wait_for_selector("#wrong:has-text('no such customer')")

    assert page.locator("#wrong").count() == 1
    assert page.locator(".charts .main-svg").count() > 0
    assert page.evaluate("csp") == []


def test_a_note_of_somebody_else_appears_by_itself(sit_down, workflow):
    one = workflow("failed")
    page = sit_down(f"/workflows/{one.pk}/")
    page.wait_for_selector("text=Add a note…")

    NoteFactory(subject_id=str(one.pk), author="ada")

    page.wait_for_selector(".note-lines:has-text('the bank is down')")


def test_a_backlog_is_said_while_there_is_one_and_nothing_jumps_back(sit_down, workflow, monkeypatch):
    monkeypatch.setattr("recovery.backlog.WORTH_SAYING", 2)
    some = [workflow("queued", wake_at=timezone.now() - timedelta(minutes=3)) for _ in range(2)]
    page = sit_down()
    page.wait_for_selector("#backlog:has-text('2 due, the oldest for 3 min')")

    for one in some:
        end(one)

    page.wait_for_selector("#backlog", state="detached")

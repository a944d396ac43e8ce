"""Acting: by keyboard, by thumb, and without JavaScript."""

from workflows.models import Status

PHONE = {"width": 390, "height": 844}


def test_a_workflow_is_recovered_by_keyboard_alone(sit_down, workflow):
    failed = workflow("failed", key="ORD-1")
    page = sit_down()

    page.keyboard.press("j")
    page.keyboard.press("r")
    page.wait_for_selector("dialog[open] #reason:focus")
    page.keyboard.type("memory raised")
    page.keyboard.press("Enter")
    page.wait_for_selector("#list .state.queued")

    failed.refresh_from_db()
    assert failed.status == Status.QUEUED
    assert page.locator(".toast:has-text('order ORD-1 is due again')").count() == 1
    assert page.locator("dialog[open]").count() == 0
    assert page.evaluate("csp") == []


def test_a_workflow_is_recovered_on_a_phone(sit_down, workflow):
    failed = workflow("failed")
    page = sit_down(viewport=PHONE, has_touch=True)

    page.tap("[data-key=r]")
    page.fill("#reason", "memory raised")
    page.tap("button.do")
    page.wait_for_selector("#list .state.queued")

    failed.refresh_from_db()
    assert failed.status == Status.QUEUED


def test_a_refusal_is_said_and_the_row_shows_the_truth(sit_down, workflow):
    queued = workflow("queued")
    page = sit_down()
    page.click("[data-key=f]")
    page.wait_for_selector("dialog[open]")

    type(queued).objects.filter(pk=queued.pk).update(status="completed", wake_at=None, finished_at=queued.due_at)
    page.fill("#reason", "duplicate")
    page.click("button.do")

    page.wait_for_selector("dialog[open] .trouble:has-text('Cannot fail')")
    assert page.locator("button.do").is_disabled()
    page.click("dialog [data-close]")
    page.wait_for_selector("#list .state.completed")


def test_without_javascript_one_can_look_and_act(sit_down, workflow):
    failed = workflow("failed", key="ORD-1")
    page = sit_down(java_script_enabled=False)
    assert page.locator("text=ORD-1").count() == 1
    assert page.locator("#live").is_visible() is False

    page.click("[data-key=r]")
    page.fill("#reason", "memory raised")
    page.click("button.do")

    failed.refresh_from_db()
    assert failed.status == Status.QUEUED
    assert page.locator(".notice:has-text('is due again')").count() == 1


def test_the_question_mark_lists_the_shortcuts(sit_down):
    page = sit_down()

    page.keyboard.press("?")
    page.wait_for_selector("#keys[open]")
    assert page.locator("#keys dd:has-text('Workflows')").count() == 1

    page.keyboard.press("Escape")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "q"


def test_a_workflow_is_revived_from_its_own_page_on_a_phone(sit_down, workflow):
    failed = workflow("failed", key="ORD-7")
    page = sit_down(f"/workflows/{failed.pk}/", viewport=PHONE, has_touch=True)

    page.tap("text=Revive…")
    page.fill("#reason", "memory raised")
    page.tap("button.do:has-text('Revive order ORD-7')")
    page.wait_for_selector("#verdict:has-text('no worker is alive')")

    failed.refresh_from_db()
    assert failed.status == Status.QUEUED
    assert page.evaluate("csp") == []


def test_a_dialog_that_is_out_of_date_says_so_and_can_be_pressed_again(sit_down, workflow):
    queued = workflow("queued", key="ORD-8", fence=1)
    page = sit_down(f"/workflows/{queued.pk}/")
    page.click("text=Fail…")
    page.fill("#reason", "duplicate")
    type(queued).objects.filter(pk=queued.pk).update(fence=5)

    page.click("button.do")
    page.wait_for_selector("dialog[open] .trouble:has-text('has changed since you looked')")
    page.click("button.do")
    page.wait_for_selector("#verdict .state.failed")

    queued.refresh_from_db()
    assert queued.status == Status.FAILED


def test_a_form_that_was_just_drawn_is_ready_for_whoever_is_quick(sit_down, workflow):
    """Else it would be sent as a page, and the list be left."""
    failed = workflow("failed", key="ORD-1")
    page = sit_down()
    page.evaluate("htmx.config.defaultSettleDelay = 10000")

    page.keyboard.press("j")
    page.keyboard.press("r")
    page.wait_for_selector("dialog[open] #reason:focus")
    page.keyboard.type("memory raised")
    page.keyboard.press("Enter")
    page.wait_for_selector(".toast:has-text('order ORD-1 is due again')")

    failed.refresh_from_db()
    assert failed.status == Status.QUEUED
    assert page.url.endswith("/workflows/")

"""Every shortcut that `?` lists, pressed."""

import re
from urllib.parse import urlsplit

import pytest

from tests.factories import WorkflowFactory

CLIPBOARD = ["clipboard-read", "clipboard-write"]


def row(page):
    return page.evaluate("document.activeElement.id")


@pytest.mark.parametrize(
    ("letter", "path"), [("o", "/"), ("w", "/workflows/"), ("r", "/recovery/"), ("k", "/workers/"), ("u", "/audit/")]
)
def test_g_and_a_letter_go_to_a_page(sit_down, letter, path):
    page = sit_down("/workers/" if letter == "w" else "/workflows/")

    page.keyboard.press("g")
    page.keyboard.press(letter)

    page.wait_for_selector(f'[data-go="{letter}"][aria-current=page]')
    assert urlsplit(page.url).path == path


def test_g_is_forgotten_when_another_key_follows(sit_down, workflow):
    workflow()
    page = sit_down()

    page.keyboard.press("g")
    page.keyboard.press("j")
    page.keyboard.press("o")

    assert page.url.endswith("/workflows/")


def test_j_and_k_walk_the_rows_and_stop_at_their_ends_and_enter_opens(sit_down, workflow):
    first, second = workflow(key="older"), workflow(key="newer")
    page = sit_down()

    seen = []
    for key in ("j", "j", "j", "k", "k"):
        page.keyboard.press(key)
        seen.append(row(page))
    page.keyboard.press("Enter")

    newer, older = f"w-{second.pk}", f"w-{first.pk}"
    assert seen == [newer, older, older, newer, newer]
    page.wait_for_url(f"**/workflows/{second.pk}/")


def test_x_selects_the_row_and_again_lets_it_go(sit_down, workflow):
    workflow()
    page = sit_down()
    ticked = page.locator("[data-select]")
    page.keyboard.press("x")  # nobody stands on a row
    assert not ticked.is_checked()

    page.keyboard.press("j")
    page.keyboard.press("x")
    assert ticked.is_checked()
    page.keyboard.press("x")
    assert not ticked.is_checked()


@pytest.mark.parametrize(("key", "status", "word"), [("r", "failed", "Revive"), ("f", "queued", "Fail")])
def test_r_recovers_and_f_fails_the_row_one_stands_on(sit_down, workflow, key, status, word):
    workflow(status, key="ORD-1")
    page = sit_down()

    page.keyboard.press("j")
    page.keyboard.press(key)

    page.wait_for_selector(f"dialog[open] h2:has-text('{word} order ORD-1?')")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog[open]", state="detached")


@pytest.mark.parametrize(("key", "status", "word"), [("r", "failed", "Revive"), ("f", "queued", "Fail")])
def test_r_and_f_act_on_the_page_of_a_workflow_too(sit_down, workflow, key, status, word):
    one = workflow(status, key="ORD-1")
    page = sit_down(f"/workflows/{one.pk}/")

    page.keyboard.press(key)

    page.wait_for_selector(f"dialog[open] h2:has-text('{word} order ORD-1?')")


def test_space_looks_at_the_row_without_leaving_the_list(sit_down, workflow):
    workflow(key="older")
    one = workflow("failed", key="ORD-1", error={"type": "ValueError", "message": "no such customer"})
    page = sit_down()

    page.keyboard.press("j")
    page.keyboard.press("Space")
    page.wait_for_selector("dialog[open] .peek:has-text('ORD-1')")
    assert page.locator(".peek .verdict").count() == 1
    assert page.evaluate("csp") == []
    assert urlsplit(page.url).path == "/workflows/"

    page.keyboard.press("Space")
    page.wait_for_selector("dialog[open]", state="detached")
    assert row(page) == f"w-{one.pk}"
    page.keyboard.press("j")
    page.keyboard.press("Space")
    page.wait_for_selector("dialog[open] .peek:has-text('older')")


def test_one_acts_from_where_one_peeks(sit_down, workflow):
    one = workflow("failed", key="ORD-1")
    page = sit_down()
    page.keyboard.press("j")
    page.keyboard.press("Space")

    page.click(".peek >> text=Revive…")
    page.wait_for_selector("dialog[open] #reason:focus")
    page.keyboard.type("memory raised")
    page.keyboard.press("Enter")
    page.wait_for_selector("#list .state.queued")

    one.refresh_from_db()
    assert one.status == "queued"
    assert row(page) == f"w-{one.pk}"


def test_c_copies_the_id_of_the_row(sit_down, workflow):
    one = workflow()
    page = sit_down(permissions=CLIPBOARD)

    page.keyboard.press("j")
    page.keyboard.press("c")

    page.wait_for_selector(f".toast:has-text('Copied {one.pk}')")
    assert page.evaluate("navigator.clipboard.readText()") == str(one.pk)


def test_p_pauses_the_page_and_lets_it_go_on(sit_down):
    page = sit_down()

    page.keyboard.press("p")
    page.wait_for_selector("[data-live-word]:has-text('Paused')")
    page.keyboard.press("p")
    page.wait_for_selector("[data-live-word]:has-text('Live')")


def test_t_goes_through_the_themes(sit_down):
    page = sit_down()
    word = page.locator(".rail [data-theme-word]")

    seen = [word.inner_text()]
    for _ in range(3):
        page.keyboard.press("t")
        seen.append(word.inner_text())

    assert seen == ["System theme", "Light theme", "Dark theme", "System theme"]


@pytest.mark.parametrize("key", ["/", "Control+k", "Meta+k"])
def test_the_search_is_one_key_away_and_letters_typed_there_are_letters(sit_down, workflow, key):
    workflow("failed")
    page = sit_down()

    page.keyboard.press(key)
    page.keyboard.type("jxrfpct?g")

    assert page.input_value("#search") == "jxrfpct?g"
    assert page.locator("dialog[open]").count() == 0
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.tagName") == "BODY"


def test_the_list_names_every_key_that_does_something_here(sit_down, workflow):
    """On a page without rows to select, what needs one is not listed."""
    workflow("failed")
    workflow("queued")
    page = sit_down()
    page.keyboard.press("?")
    listed = page.locator("#keys dt:visible").all_inner_texts()

    assert {re.sub(r"\s+", " ", keys).strip() for keys in listed} >= {
        "g o", "g w", "g r", "/", "j k", "Enter", "Space", "x", "r", "f", "c", "p", "t", "?"
    }  # fmt: skip
    page.goto("/workers/")
    page.keyboard.press("?")
    assert page.locator("#keys dt:visible", has_text="x").count() == 0


def test_what_waits_for_people_is_moved_by_keyboard_alone(sit_down):
    one = WorkflowFactory(key="ORD-1", pended=True, basket="fraud-review")
    page = sit_down("/workflows/?view=people")

    page.keyboard.press("j")
    page.keyboard.press("Tab")  # its checkbox
    page.focus("text=Move")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] #to:focus")
    page.keyboard.type("stock")
    page.keyboard.press("Enter")
    page.wait_for_selector(".toast:has-text('waits in stock')")

    one.refresh_from_db()
    assert one.basket == "stock"
    assert page.evaluate("csp") == []


def test_a_view_is_kept_and_deleted_by_keyboard_alone(sit_down, workflow):
    workflow("failed")
    page = sit_down("/workflows/?view=failed&q=name:order")

    page.focus("#keep")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] #view-name:focus")
    page.keyboard.type("Broken")
    page.keyboard.press("Enter")
    page.wait_for_selector(".tabs .on:has-text('Broken')")

    page.focus("#change")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] #view-name:focus")
    page.focus("text=Delete")
    page.keyboard.press("Enter")
    page.wait_for_selector(".notice:has-text('Broken is deleted.')")
    assert page.locator(".tabs", has_text="Broken").count() == 0
    assert page.evaluate("csp") == []


def test_views_and_notes_need_no_javascript(sit_down, workflow):
    one = workflow("failed", key="ORD-1")
    page = sit_down("/workflows/?view=failed&q=name:order", java_script_enabled=False)

    page.click("#keep")
    page.fill("#view-name", "Broken")
    page.click("button:has-text('Save')")
    assert page.locator(".tabs .on").inner_text() == "Broken"

    page.goto(f"/workflows/{one.pk}/")
    page.click("text=Add a note…")
    page.fill("#note-text", "the bank is down")
    page.click("text=Add the note")
    assert page.locator(".note-lines .line").inner_text() == "the bank is down"

"""What a person sees: both themes, a desk and a phone, empty and full; nothing sticks out, nothing is refused."""

from pathlib import Path

import pytest
from django.contrib.auth.models import Permission, User

from tests.factories import AuditEntryFactory, NoteFactory, SavedViewFactory, WorkflowFactory
from tests.project.waiting import eventually

AXE = (Path(__file__).parent / "axe.min.js").read_text()
WIDE = """() => [...document.querySelectorAll('body *')].filter(e => { const r = e.getBoundingClientRect();
  if (!r.width || r.right <= innerWidth + 1) return false;
  for (let p = e.parentElement; p; p = p.parentElement) if (/auto|scroll|hidden/.test(getComputedStyle(p).overflowX)) return false;
  return true }).map(e => e.outerHTML.slice(0, 80))"""
FROZEN = """() => addEventListener('animationstart', e => e.target.getAnimations().forEach(a => { a.pause(); a.currentTime = 0 }))"""
DESK, PHONE, SMALL = {"width": 1440, "height": 900}, {"width": 390, "height": 844}, {"width": 360, "height": 740}


def sit_down_as_admin() -> User:
    """Whoever sits down next may configure, too."""
    user = User.objects.create_user("otto")
    wanted = ["view_workflow", "act_on_workflow", "configure"]
    user.user_permissions.add(*Permission.objects.filter(codename__in=wanted, content_type__app_label="rekindle"))
    return user


@pytest.mark.parametrize(
    ("path", "theme"),
    [("/gallery/", "light"), ("/gallery/", "dark"), ("/workflows/", "light"), ("/workflows/?q=none", "dark")],
)
def test_a_page_is_accessible_and_fits(sit_down, workflow, worker, path, theme):
    for status in ("queued", "completed", "failed"):
        workflow(
            status, error={"message": "the mail server refused the connection"}, key=f"{status}-rather-long-key-" * 5
        )
    workflow("running", worker=worker)

    page = sit_down(path, color_scheme=theme, viewport=DESK)
    page.wait_for_selector(".main-svg" if "gallery" in path else "main")

    assert [found["id"] for found in page.evaluate(f"{AXE}; axe.run()")["violations"]] == []
    for size in (DESK, PHONE, SMALL):
        page.set_viewport_size(size)
        assert page.evaluate(WIDE) == [], size
    assert page.evaluate("csp") == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_of_a_workflow_is_accessible_and_fits(sit_down, crashed, theme):
    page = sit_down(f"/workflows/{crashed.pk}/", color_scheme=theme, viewport=DESK)

    for tab in ("timeline", "events", "recovery", "data", "paths", "audit"):
        page.goto(f"/workflows/{crashed.pk}/?tab={tab}")
        page.set_viewport_size(DESK)
        assert [found["id"] for found in page.evaluate(f"{AXE}; axe.run()")["violations"]] == [], tab
        for size in (DESK, PHONE, SMALL):
            page.set_viewport_size(size)
            assert page.evaluate(WIDE) == [], (tab, size)
        assert page.evaluate("csp") == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/workflows/?view=people", "/names/order/", "/audit/", "/audit/?actor=nobody"])
def test_pages_of_people_names_and_acts_are_accessible_and_fit(sit_down, workflow, path, theme):
    WorkflowFactory(name="order", pended=True, basket="a-basket-with-a-rather-long-name-" * 2)
    workflow("failed", error={"type": "TimeoutError", "message": "the mail server refused the connection " * 4})
    AuditEntryFactory(reason="because of a rather long story", before={"status": "queued"}, after={"status": "paused"})
    user = sit_down_as_admin()
    SavedViewFactory(owner=str(user.pk), name="A view with forty letters in its name ok")
    page = sit_down(path, color_scheme=theme, viewport=DESK)

    assert [found["id"] for found in page.evaluate(f"{AXE}; axe.run()")["violations"]] == []
    for size in (DESK, PHONE, SMALL):
        page.set_viewport_size(size)
        assert page.evaluate(WIDE) == [], size
    assert page.evaluate("csp") == []


@pytest.mark.parametrize(
    ("path", "link"),
    [("/workflows/?view=failed&q=name:order", "#keep"), ("/workflows/{pk}/", "text=Notes…"), ("/workflows/", "Space")],
)
def test_the_dialogs_beside_acts_are_accessible_and_fit(sit_down, workflow, path, link):
    failed = workflow("failed", key="rather-long-key-" * 8)
    NoteFactory(subject_id=str(failed.pk), text="a rather long note " * 12)
    page = sit_down(path.format(pk=failed.pk), viewport=PHONE)

    page.evaluate(FROZEN)
    if link == "Space":
        page.keyboard.press("j")
        page.keyboard.press("Space")
    else:
        page.click(link)
    page.wait_for_selector("dialog[open] h2")

    assert [found["id"] for found in page.evaluate(f"{AXE}; axe.run('dialog')")["violations"]] == []
    assert page.evaluate(WIDE) == []
    assert page.evaluate("csp") == []


@pytest.mark.parametrize("act", ["recover", "rerun", "fail"])
def test_the_dialog_is_accessible_and_fits(sit_down, workflow, act):
    failed = workflow("failed" if act != "fail" else "queued", key="rather-long-key-" * 8, variables={"total": 12})
    page = sit_down(f"/workflows/{failed.pk}/", viewport=PHONE)

    page.evaluate(FROZEN)  # what moves stays at its first frame, where it can be read the least
    page.click(f"#act-{act}")
    page.wait_for_selector("dialog[open] form")

    eventually(
        lambda: page.evaluate("document.querySelector('dialog[open]').getAnimations()[0]?.playState") == "paused"
    )
    assert [found["id"] for found in page.evaluate(f"{AXE}; axe.run('dialog')")["violations"]] == []
    assert page.evaluate(WIDE) == []
    assert page.evaluate("csp") == []


def test_the_theme_is_remembered_and_set_before_the_first_paint(sit_down):
    page = sit_down(color_scheme="light")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)

    page.keyboard.press("t")  # light
    page.keyboard.press("t")  # dark
    page.reload(wait_until="commit")
    page.wait_for_selector("body", state="attached")

    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate(paper) != light


def test_times_are_local_or_utc(sit_down, workflow):
    workflow("queued")
    page = sit_down(timezone_id="America/New_York")
    title = "document.querySelector('#list time').title"
    assert "America/New_York" in page.evaluate(title)

    page.click("#me summary")
    page.click("[data-zone-set=utc]")

    assert page.evaluate(title).endswith("UTC")


def test_brushing_a_chart_sets_the_time_range(sit_down, workflow):
    workflow("completed")
    page = sit_down("/workflows/?view=all&range=1h", viewport=DESK)
    page.wait_for_selector(".nsewdrag")

    box = page.locator(".nsewdrag").bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 60, steps=4)
    page.mouse.up()
    page.wait_for_url("**from=**")

    assert "view=all" in page.url
    assert "range=" not in page.url
    assert page.locator(".ranges summary.on").count() == 1

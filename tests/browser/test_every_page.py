"""Every page there is, found from the URL patterns: both themes, three widths, empty and full of what others have written."""

import pytest
from django.contrib.auth.models import User
from django.urls import NoReverseMatch, reverse

from recovery.urls import urlpatterns
from recovery.views import errors
from tests.factories import WorkflowFactory
from tests.pages import hostile
from workflows.models import Workflow

from .test_look import AXE, DESK, PHONE, SMALL, WIDE

SHIFTS = """() => { window.shifts = []; new PerformanceObserver(list => list.getEntries().forEach(e =>
  shifts.push(...e.sources.map(s => s.node?.outerHTML?.slice(0, 90) ?? String(s.node))))).observe({type: 'layout-shift'}) }"""


def pages():
    """Those that need no more than their name, and answer with a page."""
    for pattern in urlpatterns:
        try:
            url = reverse(f"rekindle:{pattern.name}")
        except NoReverseMatch:
            continue
        if url.endswith("/"):
            yield url


LIVE = list(pages())
BROKEN = {"/broken/": 500, "/away/": 503}
ODD = ["/nothing/here", "/workflows/01990000-0000-7000-8000-000000000000/", "/workflows/?q=nonsense:1 -name:x"]


@pytest.fixture
def full(transactional_db):
    hostile.build()


@pytest.fixture
def boss(transactional_db):
    return User.objects.create_superuser("otto")


def look_at(page, url):
    """Nothing that axe minds, nothing that sticks out, nothing refused, nothing of somebody else's making."""
    page.goto(url)
    look_around(page, url)


def look_around(page, url):
    page.set_viewport_size(DESK)
    page.wait_for_selector("main")
    found = page.evaluate(f"{AXE}; axe.run()")["violations"]
    assert [(one["id"], one["nodes"][0]["html"][:120]) for one in found] == [], url
    for size in (DESK, PHONE, SMALL):
        page.set_viewport_size(size)
        assert page.evaluate(WIDE) == [], (url, size)
    assert page.evaluate("csp") == [], url
    assert page.evaluate("document.querySelectorAll('evil, [onevil]').length") == 0, url


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_empty_page_is_accessible_and_fits(sit_down, boss, theme):
    page = sit_down("/", color_scheme=theme)

    for url in [*LIVE, *ODD]:
        look_at(page, url)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_full_page_is_accessible_and_fits(sit_down, full, boss, theme):
    page = sit_down("/", color_scheme=theme)
    failed = Workflow.objects.filter(status="failed").first()

    for url in [*LIVE, reverse("rekindle:name", args=[hostile.EVIL]), reverse("rekindle:workflow", args=[failed.pk])]:
        look_at(page, url)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_breaks_is_told_on_a_page_that_is_accessible_and_fits(sit_down, monkeypatch, theme):
    """A fault of ours, a database that is away, and a form whose world has moved, sent without scripts."""
    monkeypatch.setattr(errors, "RETRY", 600)  # it would ask again while it is looked at
    workflow = WorkflowFactory()
    page = sit_down("/", color_scheme=theme)

    for url, status in BROKEN.items():
        assert page.goto(url).status == status
        look_at(page, url)

    page.goto(reverse("rekindle:ask", args=[workflow.pk, "cancel"]))
    Workflow.objects.filter(pk=workflow.pk).update(fence=workflow.fence + 1)
    with page.expect_navigation() as answer:
        page.evaluate("document.querySelector('main form').submit()")
    assert answer.value.status == 409
    assert page.locator(".trouble:has-text('has changed since you looked')").count() == 1
    look_around(page, "a conflict")


def test_the_page_of_a_silent_database_comes_by_itself_once_it_answers(sit_down, monkeypatch):
    monkeypatch.setattr(errors, "RETRY", 0.2)
    page = sit_down("/away/")
    assert page.locator("h2:has-text('The database does not answer')").count() == 1

    monkeypatch.setattr("tests.browser.urls.silent", False)

    page.wait_for_selector("main:has-text('It answers.')")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_door_is_accessible_and_fits(sit_down, transactional_db, theme):
    """Signing in, and being refused."""
    page = sit_down("/", color_scheme=theme)
    User.objects.get(username="otto").user_permissions.clear()

    look_at(page, "/workflows/")
    page.context.clear_cookies()
    look_at(page, "/login/")


def test_nothing_moves_when_a_page_is_asked_for_again(sit_down, full, boss, settings):
    settings.REKINDLE = settings.REKINDLE | {"STALE_AFTER": 86400}  # nobody falls silent while we look
    page = sit_down("/", viewport=DESK)

    for url in LIVE:
        page.goto(url)
        for _ in page.locator("[data-chart]").all():
            page.wait_for_selector(".main-svg")
        page.wait_for_timeout(500)  # what comes in with the page has come
        page.evaluate(SHIFTS)
        for _ in range(2):
            with page.expect_response(lambda answer: "hx-request" in answer.request.headers):
                pass
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert page.evaluate("shifts") == [], url


def test_when_nobody_answers_or_the_session_is_over_every_page_says_so_and_keeps_what_it_shows(sit_down, full, boss):
    page = sit_down("/")
    cookies = page.context.cookies()
    shown = "document.querySelectorAll('main [data-live] *').length"

    for url in LIVE:
        page.goto(url)
        before = page.evaluate(shown)

        page.context.set_offline(True)
        page.wait_for_selector("#contact:has-text('No contact for')")
        assert page.evaluate("document.documentElement.classList.contains('away')"), url
        assert page.evaluate(shown) == before > 5, url

        page.context.clear_cookies()
        page.context.set_offline(False)
        page.wait_for_selector("#contact:has-text('Your session is over')")
        assert page.locator("#contact a:has-text('Sign in again')").count() == 1, url
        assert page.locator("input[name=password]").count() == 0, url
        assert page.evaluate(shown) == before, url
        page.context.add_cookies(cookies)

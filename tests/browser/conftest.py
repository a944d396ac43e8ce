"""A real Chromium, in front of the real server on a real database."""

import os
import time
from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.pages.conftest import crashed, worker, workflow  # noqa: F401

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
]
CSP = "window.csp = []; addEventListener('securitypolicyviolation', e => csp.push(e.violatedDirective + ' ' + e.blockedURI))"
FAST = "localStorage.getItem('rekindle.live') || localStorage.setItem('rekindle.live', '0.3')"


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    # Playwright keeps an event loop in this thread, which Django takes for asynchronous code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=QUIET)
        yield chromium
        chromium.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def urls(settings) -> None:
    settings.ROOT_URLCONF = "tests.browser.urls"
    settings.TEMPLATES = [
        settings.TEMPLATES[0]
        | {"DIRS": [*settings.TEMPLATES[0]["DIRS"], settings.BASE_DIR / "tests/browser/templates"]}
    ]


@pytest.fixture
def sit_down(browser: Browser, urls: None, transactional_db: None, live_server) -> Iterator[Callable[..., Page]]:
    """An operator before a window of their own, signed in."""
    windows: list[BrowserContext] = []

    def sit(path: str = "/workflows/", **window: object) -> Page:
        context = browser.new_context(base_url=live_server.url, **window)
        windows.append(context)
        context.set_default_timeout(20_000)  # the machine may be busy
        if window.get("java_script_enabled", True):
            context.add_init_script(f"{CSP}; {FAST}")
        context.add_cookies([{"name": "sessionid", "value": _session(), "url": live_server.url}])
        page = context.new_page()
        page.goto(path)
        return page

    yield sit
    for window in windows:
        window.close()
    while _still_answering():  # a page that reads while its tables are emptied would stand in the way
        time.sleep(0.02)


def _still_answering() -> bool:
    """Whether the server is at work for a window that is gone."""
    others = "datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT EXISTS (SELECT FROM pg_stat_activity WHERE {others} AND state <> 'idle')")
        return bool(cursor.fetchone()[0])


def _session() -> str:
    user, made = User.objects.get_or_create(username="otto")
    if made:
        wanted = Permission.objects.filter(codename__in=["view_workflow", "act_on_workflow"])
        user.user_permissions.add(*wanted.filter(content_type__app_label="rekindle"))
    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value

"""A form counts only if it came from one of our pages, and leads nowhere but to them."""

from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from recovery.models import AuditEntry
from recovery.urls import urlpatterns
from tests.factories import WorkflowFactory
from workflows.models import Policy, Workflow

from . import hostile
from .test_looking_changes_nothing import rows
from .walking import HTMX, addresses

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("demo")]
ELSEWHERE = [
    "https://evil.example/",
    "//evil.example/",
    "///evil.example/",
    "/\\evil.example/",
    "\\\\evil.example",
    "/\t/evil.example/",
    "javascript:alert(1)",
    " https://evil.example",
    "http:evil.example",
    "evil.example",
    "/\r\nX-Evil: 1",
]


@pytest.fixture
def boss():
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    return client


def acted(client, back, **headers):
    workflow = WorkflowFactory()
    form = {f"seen-{workflow.pk}": workflow.fence, "reason": "x", "back": back}
    return client.post(reverse("rekindle:ask", args=[workflow.pk, "cancel"]), form, headers=headers)


def test_without_its_token_no_form_of_any_address_does_anything():
    hostile.build()
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.create_superuser("boss"))
    before = rows()

    for urls in addresses(strict).values():
        for url in urls:
            for headers in ({}, HTMX):
                answer = strict.post(url, {"reason": "x", "mode": "off", "name": "x"}, headers=headers)
                assert answer.status_code in (403, 405), url

    assert rows() == before


def test_no_view_is_exempt():
    assert [one.name for one in urlpatterns if getattr(one.callback, "csrf_exempt", False)] == []


@pytest.mark.parametrize("back", ELSEWHERE)
def test_after_an_act_nobody_is_sent_elsewhere(boss, back):
    answer = acted(boss, back)

    place = urlsplit(answer["Location"])
    assert answer.status_code == 302
    assert (place.scheme, place.netloc) == ("", "")
    assert place.path.startswith("/workflows/")
    assert "X-Evil" not in answer.headers


@pytest.mark.parametrize("back", ELSEWHERE)
def test_no_page_carries_the_way_elsewhere(boss, back):
    url = reverse("rekindle:ask", args=[WorkflowFactory().pk, "cancel"])

    for headers in ({}, HTMX):
        page = boss.get(url, {"back": back, "next": back}, headers=headers).content.decode()
        assert f'href="{back}"' not in page
        assert 'href="//' not in page
        assert f'name="back" value="{back}"' not in page


def test_the_way_back_that_is_ours_is_taken(boss):
    assert acted(boss, "/workflows/?view=failed")["Location"] == "/workflows/?view=failed"


@pytest.mark.parametrize("there", ELSEWHERE)
def test_signing_in_leads_nowhere_else(there):
    User.objects.create_user("vera", password="pass-word-1")

    answer = Client().post("/login/", {"username": "vera", "password": "pass-word-1", "next": there})

    assert urlsplit(answer["Location"]).netloc == ""
    assert not answer["Location"].startswith(("//", "/\\"))


def test_nothing_but_its_own_address_is_remembered_for_after_the_login():
    answer = Client().get("/workflows/?q=x&next=https://evil.example")

    assert answer["Location"] == "/login/?next=/workflows/%3Fq%3Dx%26next%3Dhttps%3A//evil.example"


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_when_the_session_is_over_nothing_pressed_counts_and_no_form_is_drawn(headers):
    """A poll gets a status that the page can put into words; a pressed button too, and nothing happened."""
    workflow = WorkflowFactory()
    url = reverse("rekindle:ask", args=[workflow.pk, "cancel"])

    answer = Client().post(url, {f"seen-{workflow.pk}": workflow.fence}, headers=headers)

    assert answer.status_code == (401 if headers else 302)
    assert answer.content == b""
    assert Workflow.objects.get().status == "queued"
    assert not AuditEntry.objects.exists()


def test_a_poll_of_any_page_after_the_session_is_over_gets_no_login_form():
    hostile.build()
    boss = hostile.boss()

    for name, urls in addresses(boss).items():
        answer = Client().get(urls[0], headers=HTMX)
        if name != "healthz" and answer.status_code != 405:
            assert (answer.status_code, answer.content) == (401, b""), name


def test_whoever_may_not_is_told_which_permission_is_missing(nobody):
    """On every page and for every form."""
    hostile.build()
    for name, urls in addresses(hostile.boss()).items():
        if name == "healthz":
            continue
        for answer in (nobody.get(urls[0]), nobody.post(urls[0]), nobody.get(urls[0], headers=HTMX)):
            if answer.status_code != 405:
                assert answer.status_code == 403, name
                assert "the permission rekindle." in answer.content.decode(), name
    assert not Policy.objects.filter(changed_by="nora").exists()

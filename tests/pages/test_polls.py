"""Polls: nothing is sent when nothing happened, and rows do not jump."""

import pytest
from django.utils import timezone

HTMX = {"HX-Request": "true"}


@pytest.fixture
def poll(viewer):
    """Ask like an open page does: for the rows it shows."""

    def ask(view="all", tag=""):
        address = viewer.get("/workflows/", {"view": view}).context["poll"]
        return lambda tag=tag: viewer.get(address, headers=HTMX | {"If-None-Match": tag})

    return ask


def test_a_poll_without_news_is_a_304(poll, workflow, worker):
    workflow("running", worker=worker, running_at=timezone.now())
    again = poll()
    first = again()

    second = again(first["ETag"])

    assert first.status_code == 200
    assert first["ETag"].startswith('W/"')
    assert second.status_code == 304
    assert second.content == b""


def test_time_alone_is_no_news(poll, workflow, worker, monkeypatch):
    held = workflow("running", worker=worker, running_at=timezone.now())
    again = poll()
    first = again()
    later = held.due_at + timezone.timedelta(minutes=5)

    monkeypatch.setattr("recovery.templatetags.rekindle.timezone.now", lambda: later)
    second = again()

    assert "5 min" in second.content.decode()
    assert second["ETag"] == first["ETag"]


def test_a_change_is_sent(poll, workflow):
    one = workflow("queued")
    again = poll()
    first = again()

    type(one).objects.filter(pk=one.pk).update(status="failed", wake_at=None, finished_at=timezone.now())
    second = again(first["ETag"])

    assert second.status_code == 200
    assert "Failed" in second.content.decode()


def test_what_is_new_is_counted_and_not_pushed_in(poll, workflow):
    shown = workflow("queued", key="shown")
    again = poll()

    for n in range(3):
        workflow("queued", key=f"new-{n}")
    page = again().content.decode()

    assert "3 new — show" in page
    assert str(shown.pk) in page
    assert "new-0" not in page


def test_what_left_the_view_stays_in_its_place_greyed(poll, workflow):
    one = workflow("queued", key="gone")
    again = poll("waiting")

    type(one).objects.filter(pk=one.pk).update(status="failed", wake_at=None, finished_at=timezone.now())
    page = again().content.decode()

    assert "gone" in page
    assert 'class="left"' in page


def test_an_empty_list_fills_by_itself(poll, workflow):
    again = poll()

    workflow("queued", key="first")

    assert "first" in again().content.decode()


def test_polls_ask_little_of_the_database(poll, workflow, django_assert_max_num_queries):
    for _ in range(10):
        workflow()
    again = poll()

    with django_assert_max_num_queries(6):
        again()


def test_a_page_asks_little_of_the_database(viewer, workflow, django_assert_max_num_queries):
    for _ in range(10):
        workflow()

    with django_assert_max_num_queries(12):
        viewer.get("/workflows/")


def test_ids_that_are_none_are_not_found(viewer):
    assert viewer.get("/workflows/?ids=nonsense", headers=HTMX).status_code == 404

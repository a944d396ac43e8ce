"""Something to look at, where there is nothing yet: the demo, started from an empty page."""

import pytest

from recovery import demo
from recovery.models import AuditEntry
from tests.factories import WorkflowFactory
from workflows.models import Workflow

pytestmark = pytest.mark.django_db
BUTTON = "Start the demo"


def text(response):
    return response.content.decode()


@pytest.mark.parametrize("page", ["/", "/workflows/"])
def test_an_empty_page_offers_the_demo_to_those_who_may_act(operator, viewer, page):
    assert BUTTON in text(operator.get(page))
    assert BUTTON not in text(viewer.get(page))

    WorkflowFactory()

    assert BUTTON not in text(operator.get(page))
    assert "start-demo" not in text(operator.get(page))


def test_it_starts_once_and_is_audited(operator):
    first, second = operator.post("/demo/start", follow=True), operator.post("/demo/start", follow=True)

    begun = Workflow.objects.count()
    assert begun > 20
    assert f"The demo has begun with {begun} workflows." in text(first)
    assert "there are workflows already" in text(second)
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.act, entry.subject, entry.after) == ("otto", "start", "demo", {"workflows": begun})


def test_where_nobody_offers_it_there_is_none(operator, monkeypatch):
    monkeypatch.setattr(demo, "starters", [])

    assert BUTTON not in text(operator.get("/"))
    assert operator.post("/demo/start").status_code == 404
    assert not Workflow.objects.exists()


def test_a_poll_of_an_empty_page_without_news_is_not_drawn_again(operator):
    htmx = {"HX-Request": "true"}
    tag = operator.get("/workflows/", headers=htmx)["ETag"]

    assert operator.get("/workflows/", headers=htmx | {"If-None-Match": tag}).status_code == 304

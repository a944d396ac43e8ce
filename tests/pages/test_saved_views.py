"""Lists that people keep: their own, or everybody's."""

import threading
from types import SimpleNamespace
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client

from recovery import saved
from recovery.models import AuditEntry, SavedView
from workflows.errors import Refused

HTMX = {"HX-Request": "true"}
FAILED = "/views/new?view=failed&q=name:order&range=24h"


@pytest.fixture
def admin(db):
    user = User.objects.create_user("ada")
    wanted = ["view_workflow", "act_on_workflow", "configure"]
    user.user_permissions.add(*Permission.objects.filter(codename__in=wanted, content_type__app_label="rekindle"))
    client = Client()
    client.force_login(user)
    return client


def tabs(client, address="/workflows/"):
    return {tab.word: tab for tab in client.get(address).context["tabs"]}


def test_a_list_is_kept_with_its_view_search_and_range(viewer, workflow):
    workflow("failed", key="bad")
    workflow("completed", key="good")

    done = viewer.post(FAILED, {"name": "Broken orders"})
    page = viewer.get(done["Location"])

    assert page.context["asked_for"] == {"view": "failed", "q": "name:order", "range": "24h"}
    assert [row.workflow.key for row in page.context["page"].rows] == ["bad"]
    assert tabs(viewer, done["Location"])["Broken orders"].on
    assert not tabs(viewer, done["Location"])["Failed"].on
    assert "Broken orders is among your views." in page.content.decode()


def test_a_time_span_is_kept_too(viewer):
    done = viewer.post("/views/new?from=2026-01-31T09:00&to=2026-01-31T10:00", {"name": "That morning"})

    assert viewer.get(done["Location"]).context["asked_for"] == {
        "view": "all",
        "from": "2026-01-31T09:00",
        "to": "2026-01-31T10:00",
    }


def test_one_is_offered_to_keep_what_no_tab_shows(viewer):
    plain, searched = viewer.get("/workflows/?view=failed"), viewer.get("/workflows/?view=failed&q=name:order")

    assert not plain.context["keep"]
    assert searched.context["keep"].startswith("/views/new?")
    form = viewer.get(searched.context["keep"]).content.decode()
    assert "It shows <b>Failed</b>, searched for <code>name:order</code>" in form


def test_ones_own_views_are_nobody_elses(viewer, operator):
    viewer.post(FAILED, {"name": "Mine"})
    view = SavedView.objects.get()

    assert "Mine" in tabs(viewer)
    assert "Mine" not in tabs(operator)
    assert operator.get(f"/views/{view.pk}").status_code == 404
    assert operator.post(f"/views/{view.pk}", {"delete": "yes"}).status_code == 404
    assert SavedView.objects.count() == 1


def test_a_shared_view_is_everybodys_to_see_and_its_owners_to_change(operator, viewer, admin):
    operator.post(FAILED, {"name": "On duty", "shared": "on"})
    view = SavedView.objects.get()

    assert tabs(viewer)["On duty"].title == "Shared by otto"
    assert not tabs(viewer)["On duty"].change
    refused = viewer.post(f"/views/{view.pk}", {"name": "Hijacked"}, follow=True)
    assert "On duty is otto&#x27;s; save one of your own." in refused.content.decode()
    view.refresh_from_db()
    assert view.name == "On duty"

    admin.post(f"/views/{view.pk}", {"delete": "yes"})
    assert not SavedView.objects.exists()
    assert [entry.act for entry in AuditEntry.objects.order_by("id")] == ["share", "delete"]
    assert AuditEntry.objects.first().after == {
        "name": "On duty",
        "view": "failed",
        "search": "name:order",
        "range": "24h",
    }


def test_who_only_looks_shares_nothing(viewer):
    response = viewer.post(FAILED, {"name": "For all", "shared": "on"})

    assert response.status_code == 409
    assert "needs the permission rekindle.act_on_workflow" in response.content.decode()
    assert not SavedView.objects.exists()


@pytest.mark.parametrize("name", ["broken", "BROKEN", " Broken ", "Needs attention", "running"])
def test_a_name_is_given_once(viewer, name):
    viewer.post(FAILED, {"name": "Broken"})

    response = viewer.post(FAILED, {"name": name})

    assert response.status_code == 409
    assert f"there is a view called {name.strip()} already" in response.content.decode()
    assert SavedView.objects.count() == 1


def test_a_name_that_everybody_sees_is_taken(viewer, operator):
    operator.post(FAILED, {"name": "On duty", "shared": "on"})

    assert viewer.post(FAILED, {"name": "on duty"}).status_code == 409


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("", "give the view a name"), ("\u202e", "give the view a name"), ("x" * 41, "at most 40 are stored")],
)
def test_a_name_that_is_none_is_refused(viewer, name, sentence):
    response = viewer.post(FAILED, {"name": name}, headers=HTMX)

    assert response.status_code == 409
    assert sentence in response.content.decode()
    assert "<html" not in response.content.decode()


def test_a_view_is_renamed_and_keeps_what_it_shows(viewer):
    viewer.post(FAILED, {"name": "Broken"})
    view = SavedView.objects.get()

    viewer.post(f"/views/{view.pk}", {"name": "Broken orders"})
    viewer.post(f"/views/{view.pk}", {"name": "broken orders"})

    view.refresh_from_db()
    assert (view.name, view.view, view.search, view.range) == ("broken orders", "failed", "name:order", "24h")
    assert not AuditEntry.objects.exists()


def test_a_view_is_deleted_only_by_the_button(viewer):
    viewer.post(FAILED, {"name": "Broken"})
    view = SavedView.objects.get()

    viewer.get(f"/views/{view.pk}?delete=yes")
    assert SavedView.objects.exists()

    assert viewer.post(f"/views/{view.pk}", {"delete": "yes"}, headers=HTMX)["HX-Redirect"] == "/workflows/"
    assert not SavedView.objects.exists()


def test_there_are_not_more_tabs_than_one_can_read(viewer, monkeypatch):
    monkeypatch.setattr(saved, "MOST", 1)
    viewer.post(FAILED, {"name": "One"})

    assert "1 views are the most" in viewer.post(FAILED, {"name": "Two"}).content.decode()


def test_a_view_whose_span_has_grown_too_long_still_has_its_tab(viewer):
    SavedView.objects.create(
        owner=str(User.objects.get(username="vera").pk), view="all", name="Since ever", range="2001-01-01T00:00/"
    )

    assert "Since ever" in tabs(viewer)
    assert viewer.get(f"/views/{SavedView.objects.get().pk}").status_code == 200


def test_hostile_names_are_only_text(viewer):
    viewer.post(FAILED, {"name": "<script>alert(1)</script>"})

    page = viewer.get("/workflows/").content.decode()

    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


@pytest.mark.parametrize("pk", [7, UUID(int=7), "somebody@example.org"])
def test_any_kind_of_user_keeps_views(db, pk):
    """Users may have any key, and live in another database."""
    user = SimpleNamespace(pk=pk, get_username=lambda: "x" * 300, has_perm=lambda what: True)
    who = saved.person(user)

    saved.keep(who, name="Mine", shared=False, view="all", search="", times={})

    assert [view.owner for view in saved.seen_by(who)] == [str(pk)]


@pytest.mark.django_db(transaction=True)
def test_of_two_who_share_the_same_name_at_once_one_is_refused():
    people = [saved.Person(str(n), f"person {n}", may_share=True) for n in range(4)]
    at_once, refused = threading.Barrier(len(people)), []

    def share(who):
        at_once.wait()
        try:
            saved.keep(who, name="On duty", shared=True, view="all", search="", times={})
        except Refused as refusal:
            refused.append(str(refusal))
        finally:
            connection.close()

    threads = [threading.Thread(target=share, args=[who]) for who in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert SavedView.objects.count() == 1
    assert len(refused) == 3

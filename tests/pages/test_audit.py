"""The audit page: who did what, when and why, and what it changed."""

import csv
import io

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from recovery.models import AuditEntry
from tests.factories import AuditEntryFactory

HTMX = {"HX-Request": "true"}


def text(response):
    return response.content.decode()


def table(response):
    return list(csv.DictReader(io.StringIO(b"".join(response.streaming_content).decode())))


@pytest.fixture
def seer(db):
    user = User.objects.create_user("paula")
    names = ["view_workflow", "see_payload"]
    user.user_permissions.add(*Permission.objects.filter(codename__in=names, content_type__app_label="rekindle"))
    client = Client()
    client.force_login(user)
    return client


def test_an_entry_says_who_what_why_and_what_changed(viewer):
    AuditEntryFactory(
        actor="otto",
        act="recover",
        subject_name="order ORD-1",
        reason="memory raised",
        before={"status": "failed", "fence": 2},
        after={"status": "queued", "fence": 2},
    )
    AuditEntryFactory(turned_down=True)

    page = text(viewer.get("/audit/"))

    for said in ("otto", "recover", "order ORD-1", "memory raised", "status <del>failed</del> <ins>queued</ins>"):
        assert said in page
    assert "fence" not in page
    assert "Cannot revive three (running)." in page


def test_secrets_are_for_those_who_may_see_payloads(viewer, seer):
    AuditEntryFactory(before={"variables": {"api_token": "old-one"}}, after={"variables": {"api_token": "hush"}})

    assert "hush" not in text(viewer.get("/audit/"))
    assert "redacted" in text(viewer.get("/audit/"))
    assert "hush" in text(seer.get("/audit/"))
    assert "hush" not in table(viewer.get("/audit.csv"))[0]["after"]
    assert "hush" in table(seer.get("/audit.csv"))[0]["after"]


@pytest.mark.parametrize(
    "query", [{"actor": "otto"}, {"act": "fail"}, {"subject": "policy"}, {"subject": "77"}, {"subject": "the order"}]
)
def test_it_is_filtered_by_actor_act_and_subject(viewer, query):
    AuditEntryFactory()
    one = AuditEntryFactory(actor="otto", act="fail", subject="policy", subject_id="77", subject_name="the order")

    rows = viewer.get("/audit/", query).context["rows"]

    assert [entry.pk for entry, _ in rows] == [one.pk]
    assert [row["actor"] for row in table(viewer.get("/audit.csv", query))] == ["otto"]


def test_it_is_paged_by_number(viewer):
    made = [AuditEntryFactory(actor="otto") for _ in range(51)]

    first = viewer.get("/audit/?actor=otto")
    second = viewer.get(first.context["older"])

    assert [entry.pk for entry, _ in first.context["rows"]] == [one.pk for one in made[:0:-1]]
    assert [entry.pk for entry, _ in second.context["rows"]] == [made[0].pk]
    assert second.context["older"] == ""
    assert viewer.get("/audit/?before=x").status_code == 404


def test_a_spreadsheet_meets_no_formula(viewer):
    AuditEntryFactory(actor="=1+1", reason="@SUM(A1)")

    [row] = table(viewer.get("/audit.csv"))

    assert (row["actor"], row["reason"]) == ("'=1+1", "'@SUM(A1)")


def test_hostile_text_is_shown_as_text(viewer):
    AuditEntryFactory(actor="<script>a", reason="<script>r", subject_name="<script>s", before={"<script>": "<script>"})

    assert "<script>" not in text(viewer.get("/audit/?actor=<script>a"))
    assert viewer.get("/audit/", {"actor": "a\0b"}).status_code == 200


def test_the_page_and_its_polls_ask_little(viewer, django_assert_max_num_queries):
    AuditEntryFactory()

    with django_assert_max_num_queries(12):
        page = viewer.get("/audit/")
    with django_assert_max_num_queries(6):
        poll = viewer.get("/audit/", headers=HTMX)
    again = viewer.get("/audit/", headers=HTMX | {"If-None-Match": poll["ETag"]})

    assert " style=" not in text(page)
    assert "<html" not in text(poll)
    assert again.status_code == 304


def test_it_cannot_be_altered_here(viewer):
    AuditEntryFactory()

    for method in (viewer.post, viewer.put, viewer.delete):
        assert method("/audit/").status_code == 405
        assert method("/audit.csv").status_code == 405
    assert AuditEntry.objects.count() == 1


def test_nothing_yet_and_no_match_are_told(viewer):
    assert "Nobody has acted yet" in text(viewer.get("/audit/"))
    assert "No entry matches" in text(viewer.get("/audit/?actor=nobody"))


def test_an_entry_leads_to_what_was_acted_upon(viewer, workflow):
    one = workflow("failed")
    AuditEntryFactory(subject="workflow", subject_id=str(one.pk), subject_name="order")
    AuditEntryFactory(subject="workflow", subject_id="not an id", subject_name="nothing")
    AuditEntryFactory(subject="policy", subject_id="order", subject_name="order")
    AuditEntryFactory(subject="policy", subject_id="*", subject_name="*")
    AuditEntryFactory(subject="view", subject_id="7", subject_name="On duty")

    pages = [entry.page for entry, _ in viewer.get("/audit/").context["rows"]]

    assert pages == ["", "", "/names/order/", "", f"/workflows/{one.pk}/"]
    assert all(viewer.get(page).status_code == 200 for page in pages if page)


def test_no_match_shows_each_filter_and_the_way_without_it(viewer):
    AuditEntryFactory(actor="otto", act="fail")

    response = viewer.get("/audit/", {"actor": "otto", "act": "pause"})

    chips = dict(response.context["chips"])
    assert "No entry matches" in response.content.decode()
    assert list(chips) == ["actor: otto", "act: pause"]
    assert len(viewer.get(chips["act: pause"]).context["rows"]) == 1

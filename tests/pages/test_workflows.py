import json
from datetime import datetime

import pytest
from django.utils import timezone

from recovery.metrics import measure
from recovery.queries import workflows as queries
from recovery.search.troubles import first_id
from tests.factories import DutyFactory, RecoveryFactory, StepFactory, WorkflowFactory, ago
from workflows import verbs

HTMX = {"HX-Request": "true"}


def test_the_list_shows_state_name_key_step_and_worker(viewer, workflow, worker):
    held = workflow("running", key="ORD-1", worker=worker, running_at=timezone.now())
    held.steps.create(position=1, name="reserve_stock")
    held.steps.create(position=2, name="charge_card")

    page = viewer.get("/workflows/").content.decode()

    for text in ("Running", "order", "ORD-1", str(held.pk), "charge_card", "host-2:812"):
        assert text in page
    assert "reserve_stock" not in page


@pytest.mark.parametrize(
    ("view", "seen"),
    [
        ("all", {"run", "wait", "fail", "done"}),
        ("running", {"run"}),
        ("waiting", {"wait"}),
        ("failed", {"fail"}),
        ("completed", {"done"}),
    ],
)
def test_a_view_shows_only_what_it_names(viewer, workflow, worker, view, seen):
    workflow("running", key="run", worker=worker)
    workflow("queued", key="wait")
    workflow("failed", key="fail")
    workflow("completed", key="done")

    response = viewer.get("/workflows/", {"view": view})

    assert {row.workflow.key for row in response.context["page"].rows} == seen


def test_a_workflow_whose_worker_ended_is_an_orphan(viewer, workflow, worker):
    worker.ended_at = timezone.now()
    worker.save()
    workflow("running", worker=worker)

    assert "Orphan" in viewer.get("/workflows/").content.decode()


def test_pages_follow_each_other_without_gap_or_overlap(viewer, workflow):
    made = {workflow().pk for _ in range(queries.PAGE + 3)}

    first = viewer.get("/workflows/")
    second = viewer.get(first.context["older"])

    ids = [row.workflow.pk for response in (first, second) for row in response.context["page"].rows]
    assert len(ids) == len(made)
    assert set(ids) == made
    assert second.context["older"] is None


@pytest.mark.parametrize("query", [{"view": "nonsense"}, {"before": "nonsense"}])
def test_an_address_that_means_nothing_is_not_found(viewer, query):
    assert viewer.get("/workflows/", query).status_code == 404


def test_a_poll_gets_only_rows_in_few_queries(viewer, workflow, django_assert_max_num_queries):
    for _ in range(10):
        workflow()

    with django_assert_max_num_queries(6):
        page = viewer.get("/workflows/", headers=HTMX).content.decode()

    assert "<html" not in page
    assert page.count("<tr id") == 10


def test_hostile_text_is_escaped(operator, workflow):
    bad = "<script>alert('x')</script>"
    evil = workflow("failed", name=bad, key=f'"{bad}', error={"message": bad})
    evil.steps.create(position=1, name=bad)

    page = operator.get("/workflows/").content.decode()

    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert '"&quot;&lt;' not in page.replace('title="&quot;', "")


def test_an_empty_list_says_so(viewer):
    assert "No workflows yet" in viewer.get("/workflows/").content.decode()


# -- views ------------------------------------------------------------------------------------------------------------


def keys(response):
    return {row.workflow.key for row in response.context["page"].rows}


def test_what_needs_attention_is_in_one_view(viewer):
    WorkflowFactory(key="well")
    WorkflowFactory(key="done", completed=True)
    WorkflowFactory(key="asleep", sleeping=True)
    WorkflowFactory(key="orphan", orphan=True)
    WorkflowFactory(key="blocked", blocked=True)
    WorkflowFactory(key="review", pended=True, basket="crash_review")
    WorkflowFactory(key="late", wake_at=ago(hours=1))
    WorkflowFactory(key="given up", failed=True, error={"type": "RecoveryFailed", "message": "x"})
    WorkflowFactory(key="discarded", failed=True, error={"type": "RecoveryFailed", "message": "x", "discarded": {}})
    WorkflowFactory(key="too long", running=True, running_at=ago(hours=1), run_limit=60)

    response = viewer.get("/workflows/", {"view": "attention"})

    assert keys(response) == {"orphan", "blocked", "review", "late", "given up", "too long"}


def test_when_nothing_needs_attention_it_says_why_one_may_believe_it(viewer, django_assert_max_num_queries):
    DutyFactory(name="sweep", began_at=ago(seconds=90))
    address = "/workflows/?view=attention"
    assert "No orphans in 24 h; last sweep <time" in viewer.get(address).content.decode()

    RecoveryFactory(recovered=True)
    RecoveryFactory(recovered=True, detected_at=ago(days=2))
    with django_assert_max_num_queries(6):
        page = viewer.get(address, headers=HTMX).content.decode()
    assert "1 orphan in 24 h, all dealt with; last sweep" in page


def test_what_was_recovered_today_is_in_one_view(viewer):
    RecoveryFactory(workflow_id=WorkflowFactory(key="today").pk, recovered=True)
    RecoveryFactory(workflow_id=WorkflowFactory(key="before").pk, recovered=True, settled_at=ago(days=2))
    RecoveryFactory(workflow_id=WorkflowFactory(key="lost").pk, gave_up=True)

    assert keys(viewer.get("/workflows/", {"view": "recovered"})) == {"today"}


def test_what_waits_for_people_is_told_by_basket(viewer):
    for key, basket in (("a", "fraud-review"), ("b", "fraud-review"), ("c", "stock"), ("d", "retry_queue")):
        WorkflowFactory(key=key, pended=True, basket=basket)

    response = viewer.get("/workflows/", {"view": "people"})
    of_one = viewer.get(next(url for basket, url, _ in response.context["baskets"] if basket.name == "fraud-review"))

    assert keys(response) == {"a", "b", "c"}
    assert {(one.name, one.count) for one, _, _ in response.context["baskets"]} == {
        ("fraud-review", "2"),
        ("stock", "1"),
    }
    assert keys(of_one) == {"a", "b"}
    assert [one.name for one, _, on in of_one.context["baskets"] if on] == ["fraud-review"]


def test_paths_that_wait_for_people_are_one_row_though_another_path_runs(viewer):
    one = WorkflowFactory(key="a", running=True)
    for path in (".a.", ".b."):
        StepFactory(workflow=one, path=path, status="waiting", basket="fraud-review")
    StepFactory(workflow=one, path=".c.", status="open")

    response = viewer.get("/workflows/", {"view": "people"})

    assert [row.workflow.key for row in response.context["page"].rows] == ["a"]
    assert response.context["page"].count == "1"
    assert [(basket.name, basket.count) for basket, _, _ in response.context["baskets"]] == [("fraud-review", "2")]


@pytest.mark.parametrize("end", [verbs.cancel, verbs.fail])
def test_what_ended_while_it_waited_waits_for_nobody(viewer, end):
    waits = WorkflowFactory(key="a", pended=True, basket="crash_review")
    end(WorkflowFactory(key="b", pended=True, basket="crash_review").pk, by="otto", reason="x")

    people, attention = (viewer.get("/workflows/", {"view": view}) for view in ("people", "attention"))

    assert keys(people) == keys(attention) == {waits.key}
    assert [(one.name, one.count) for one, _, _ in people.context["baskets"]] == [("crash_review", "1")]
    assert keys(viewer.get("/workflows/", {"q": "basket:crash_review"})) == {waits.key}
    assert measure("needs_people").value == 1


def test_what_waits_for_people_is_resumed_or_moved_from_the_list(operator, viewer):
    one = WorkflowFactory(key="a", pended=True, basket="fraud-review")

    page = operator.get("/workflows/", {"view": "people"}).content.decode()

    for act in ("resume", "move"):
        assert f"/workflows/{one.pk}/ask/{act}?back=" in page
        assert f"/ask/{act}" not in viewer.get("/workflows/", {"view": "people"}).content.decode()


@pytest.mark.parametrize("view", [*queries.VIEWS, *queries.QUIET])
def test_an_empty_view_says_what_would_be_there(viewer, view):
    assert '<td colspan="9" class="empty"><h2>' in viewer.get("/workflows/", {"view": view}).content.decode()


# -- searching --------------------------------------------------------------------------------------------------------


def test_each_filter_is_a_chip_that_can_be_taken_away(viewer, workflow):
    workflow("failed", key="bad")
    workflow("failed", key="other", name="parcel")
    workflow("queued", key="good")

    response = viewer.get("/workflows/", {"q": "status:failed name:order", "range": "1h"})
    chips = dict(response.context["chips"])

    assert keys(response) == {"bad"}
    assert list(chips) == ["status:failed", "name:order", "asked for: last 1 h"]
    assert keys(viewer.get(chips["status:failed"])) == {"bad", "good"}
    assert keys(viewer.get(chips["name:order"])) == {"bad", "other"}
    assert "range" not in chips["asked for: last 1 h"]


def test_an_empty_search_shows_its_filters(viewer, workflow):
    workflow()

    page = viewer.get("/workflows/", {"q": "status:failed"}).content.decode()

    assert "No workflow matches" in page
    assert 'aria-label="Search without status:failed"' in page


def test_what_is_not_understood_is_said_beside_the_list_and_shows_nothing(viewer, workflow):
    workflow()

    response = viewer.get("/workflows/", {"q": "status:broken"})

    assert "There is no status &#x27;broken&#x27;" in response.content.decode()
    assert 'value="status:broken"' in response.content.decode()
    assert keys(response) == set()


def test_a_range_in_the_address_holds_for_the_list_too(viewer, workflow):
    workflow(key="new")
    workflow(key="old", id=first_id(1_000), created_at=ago(days=2))

    assert keys(viewer.get("/workflows/")) == {"new", "old"}
    assert keys(viewer.get("/workflows/", {"range": "24h"})) == {"new"}


def test_the_box_suggests_keys_and_names(viewer, workflow):
    workflow(name="parcel")

    page = viewer.get("/workflows/").content.decode()

    assert '<option value="status:failed">' in page
    assert '<option value="name:parcel">' in page


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", '"><img src=x>', "status:<b>", "\0", "%s %(x)s", "is:'", "a" * 900]
)
def test_hostile_searches_are_only_text(viewer, workflow, text):
    workflow()

    response = viewer.get("/workflows/", {"q": text})

    assert response.status_code == 200
    for bad in ("<script>alert", "<img src=x", "<b>&#x27;"):
        assert bad not in response.content.decode()


SEARCHES = ["", "name:ord* status:queued", "is:late -is:orphan step:x error:y worker:a:1 basket:b"]


@pytest.mark.parametrize("text", SEARCHES)
@pytest.mark.parametrize("view", queries.VIEWS)
def test_no_search_costs_many_queries(viewer, workflow, django_assert_max_num_queries, view, text):
    for _ in range(queries.PAGE + 1):
        workflow()

    with django_assert_max_num_queries(12):
        page = viewer.get("/workflows/", {"view": view, "q": text})
    with django_assert_max_num_queries(6):
        viewer.get(page.context["poll"], headers=HTMX)


def test_counts_are_exact_up_to_many(viewer, workflow, monkeypatch):
    monkeypatch.setattr(queries, "COUNTED", queries.PAGE + 1)
    for _ in range(queries.PAGE + 1):
        workflow()

    first = viewer.get("/workflows/")
    workflow()
    poll = viewer.get(first.context["poll"], headers=HTMX).content.decode()

    assert first.context["page"].count == "51"
    assert "0k+</span>" in poll
    assert "1 new — show" in poll


# -- as CSV -----------------------------------------------------------------------------------------------------------


def test_the_csv_has_what_the_list_shows_and_no_payload(viewer, workflow):
    workflow("failed", key="=bad()", input={"card": "4111"}, error={"message": "secret"})
    workflow("queued", key="good")

    link = viewer.get("/workflows/", {"q": "status:failed"}).context["csv"]
    response = viewer.get(link)
    text = b"".join(response.streaming_content).decode()

    assert response["Content-Type"].startswith("text/csv")
    assert text.startswith("id,name,version,key,")
    assert "'=bad()" in text
    for hidden in ("4111", "secret", "good"):
        assert hidden not in text


def test_the_csv_ends_somewhere(viewer, workflow, monkeypatch):
    monkeypatch.setattr(queries, "EXPORTED", 3)
    for _ in range(5):
        workflow()

    lines = b"".join(viewer.get("/workflows.csv").streaming_content).decode().splitlines()

    assert len(lines) == 1 + 3


def test_json_lines_say_the_same_to_programs(viewer, workflow):
    workflow("failed", key="=bad()\n\u2028", input={"card": "4111"}, error={"message": "secret"})
    workflow("queued", key="good")

    link = viewer.get("/workflows/", {"q": "status:failed"}).context["jsonl"]
    response = viewer.get(link)
    (line,) = b"".join(response.streaming_content).decode().rstrip("\n").split("\n")

    told = json.loads(line)
    assert response["Content-Type"].startswith("application/x-ndjson")
    assert tuple(told) == queries.EXPORT
    assert (told["key"], told["status"], told["started_at"]) == ("=bad()\n\u2028", "failed", None)
    assert datetime.fromisoformat(told["created_at"]).utcoffset() is not None


# -- many at once -----------------------------------------------------------------------------------------------------


def test_those_selected_are_asked_about_together(operator, workflow):
    some = [workflow("queued", key=key) for key in ("one", "two")]
    page = operator.get("/workflows/").content.decode()

    asked = operator.get("/workflows/ask/pause", {"ids": [str(each.pk) for each in some]}).content.decode()

    for each in some:
        assert f'form="bulk" name="ids" value="{each.pk}"' in page
    assert 'formaction="/workflows/ask/pause"' in page
    assert "2 workflows" in asked


def test_a_viewer_selects_nothing(viewer, workflow):
    workflow()

    assert 'form="bulk"' not in viewer.get("/workflows/").content.decode()


# -- how far behind ---------------------------------------------------------------------------------------------------


def test_a_backlog_is_said_on_the_list_and_on_its_name_and_goes_by_itself(
    viewer, workflow, monkeypatch, django_assert_max_num_queries
):
    monkeypatch.setattr("recovery.backlog.WORTH_SAYING", 3)
    for _ in range(3):
        workflow(wake_at=ago(minutes=2, seconds=30))
    sentence = "3 due, the oldest for 2 min"

    for page in ("/workflows/", "/names/order/"):
        assert sentence in viewer.get(page).content.decode()
    with django_assert_max_num_queries(6):
        assert sentence in viewer.get("/workflows/behind", headers=HTMX).content.decode()

    type(workflow()).objects.all().update(wake_at=ago(seconds=1))
    assert viewer.get("/workflows/behind", headers=HTMX).content.decode().strip() == ""

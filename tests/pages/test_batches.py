"""Acting on everything that matches: the dialog, the batch's page, its results, and the stop."""

import re
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from recovery import batches
from recovery.batches.progress import progress
from recovery.models import AuditEntry, Batch, BatchItem
from tests.factories import BatchFactory, BatchItemFactory, StepFactory, WorkflowFactory
from workflows.models import Workflow

HTMX = {"HX-Request": "true"}
HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')
pytestmark = pytest.mark.django_db


def address(act, **query):
    return f"/workflows/ask/{act}?" + "&".join(f"{key}={value}" for key, value in (query | {"all": "yes"}).items())


def asked(client, act, **query):
    """The fields of the form somebody looks at, a reason given."""
    return dict(HIDDEN.findall(client.get(address(act, **query)).content.decode())) | {"reason": "tidy up"}


def carry_on():
    return batches.carry_on(time.monotonic() + 60)


def test_the_list_offers_all_that_match_with_what_it_was_asked_for(operator, viewer, workflow):
    workflow("failed")

    page = operator.get("/workflows/", {"view": "failed", "q": "name:order"}).content.decode()

    assert "select all 1 matching" in page
    assert '<input type="hidden" name="q" value="name:order">' in page
    assert '<input type="hidden" name="view" value="failed">' in page
    for act in ("recover", "revive", "pause", "resume", "move", "cancel", "fail"):
        assert f'formaction="/workflows/ask/{act}"' in page
    looking = viewer.get("/workflows/").content.decode()
    assert "matching" not in looking
    assert "/batches/" in looking


def test_the_plan_comes_first_for_a_sample_and_says_so(operator, monkeypatch):
    monkeypatch.setattr("recovery.queries.batches.SAMPLE", 3)
    for trait in ("queued", "queued", "completed", "queued", "queued"):
        WorkflowFactory(**{trait: True})

    page = operator.get(address("cancel")).content.decode()

    assert "Of the oldest 3, 2 would be done and 1 skipped. The other 2 are judged when their turn comes." in page
    assert "Skipped: it has ended already (completed)" in page
    assert ">Cancel 5 workflows</button>" in page
    assert not Batch.objects.exists()


def test_those_to_which_the_same_would_happen_are_told_once(operator):
    for name in ("invoice", "invoice", "invoice", "mail"):
        WorkflowFactory(name=name)

    page = operator.get(address("cancel")).content.decode()

    assert page.count("It is cancelled at once: nobody holds it.") == 2
    assert page.count("and 2 like it") == 1
    assert "more</li>" not in page


def test_when_all_are_foreseen_the_plan_is_whole(operator):
    WorkflowFactory()
    WorkflowFactory(completed=True)

    assert "Will cancel 1 of 2; 1 is skipped." in operator.get(address("cancel")).content.decode()


def test_more_than_a_batch_takes_is_said(operator, monkeypatch):
    for name in ("recovery.queries.batches.MOST", "recovery.batches.beginning.MOST"):
        monkeypatch.setattr(name, 2)
    monkeypatch.setattr("recovery.queries.batches.SAMPLE", 1)
    for _ in range(3):
        WorkflowFactory()

    page = operator.get(address("cancel")).content.decode()
    operator.post(address("cancel"), asked(operator, "cancel"))

    assert "More than 2 match, and a batch takes no more: ask again when it is done." in page
    assert Batch.objects.get().total == 2


def test_what_would_not_be_done_to_any_has_no_button_to_press(operator):
    WorkflowFactory(completed=True)

    page = operator.get(address("cancel")).content.decode()

    assert re.search(r'<button class="do bad" disabled>', page)


def test_pressing_it_begins_a_batch_of_what_matches(operator):
    wanted = WorkflowFactory(failed=True)
    WorkflowFactory()

    answer = operator.post(address("revive", view="failed"), asked(operator, "revive", view="failed"))

    batch = Batch.objects.get()
    assert answer["Location"] == f"/batches/{batch.pk}/"
    assert [item.workflow_id for item in batch.items.all()] == [wanted.pk]
    assert (batch.by, batch.via, batch.reason, batch.chosen, batch.query) == (
        "otto",
        "page",
        "tidy up",
        "Failed",
        "view=failed",
    )
    carry_on()
    wanted.refresh_from_db()
    assert wanted.status == "queued"


def test_with_htmx_the_page_of_the_batch_follows(operator):
    WorkflowFactory()

    answer = operator.post(address("cancel"), asked(operator, "cancel"), headers=HTMX)

    assert (answer.status_code, answer["HX-Redirect"]) == (204, f"/batches/{Batch.objects.get().pk}/")


def test_a_double_click_is_one_batch(operator):
    """I10."""
    WorkflowFactory()
    form = asked(operator, "cancel")

    first, second = (operator.post(address("cancel"), form) for _ in range(2))

    assert first["Location"] == second["Location"]
    assert Batch.objects.count() == BatchItem.objects.count() == AuditEntry.objects.count() == 1


def test_hostile_text_in_the_form_breaks_nothing(operator):
    WorkflowFactory(name="\U0001f525" * 20)
    q = "%F0%9F%94%A5" * 20

    answer = operator.post(address("cancel", q=q), asked(operator, "cancel", q=q) | {"token": "a\0b", "reason": "<b>"})

    batch = Batch.objects.get()
    assert answer.status_code == 302
    assert batch.total == 1
    assert operator.get(f"/workflows/?{batch.query}").context["page"].count == "1"
    assert "&lt;b&gt;" in operator.get(answer["Location"]).content.decode()
    refused = operator.post(address("cancel"), asked(operator, "cancel") | {"reason": "a\0b"})
    assert refused.status_code == 409


def test_more_than_a_handful_need_the_number_typed(operator):
    for _ in range(26):
        WorkflowFactory()
    form = asked(operator, "cancel")

    refused = operator.post(address("cancel"), form)
    assert refused.status_code == 409
    assert "type 26, the number of workflows, to confirm" in refused.content.decode()
    assert not Batch.objects.exists()

    assert operator.post(address("cancel"), form | {"number": "26"}).status_code == 302


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"reason": " "}, "a reason is required"),
        ({"count": ""}, "the form did not say what you saw"),
        ({"newest": "nonsense"}, "the form did not say what you saw"),
        ({"count": "9" * 30}, "the form did not say what you saw"),
        ({"reason": "x" * 501}, "at most 500"),
    ],
)
def test_a_form_that_does_not_say_it_all_does_nothing(operator, change, sentence):
    WorkflowFactory()

    answer = operator.post(address("cancel"), asked(operator, "cancel") | change)

    assert answer.status_code == 409
    assert sentence in answer.content.decode()
    assert not Batch.objects.exists()


def test_all_that_wait_in_a_basket_are_moved_to_another(operator):
    one = WorkflowFactory(pended=True, basket="desk")
    chosen = {"view": "people", "q": "basket:desk"}
    dialog = operator.get(address("move", **chosen)).content.decode()
    form = asked(operator, "move", **chosen)

    forgotten = operator.post(address("move", **chosen), form)
    nowhere = operator.post(address("move", **chosen), form | {"to": "retry_queue"})
    operator.post(address("move", **chosen), form | {"to": "night-shift"})

    assert '<option value="desk">' in dialog
    assert (forgotten.status_code, nowhere.status_code) == (409, 409)
    assert "name the basket they shall wait in" in forgotten.content.decode()
    assert "nobody looks for work there" in nowhere.content.decode()
    assert 'value="retry_queue"' in nowhere.content.decode()
    batch = Batch.objects.get()
    assert (batch.act, batch.basket, batch.to) == ("move", "desk", "night-shift")
    assert "night-shift" in operator.get(f"/batches/{batch.pk}/").content.decode()
    carry_on()
    assert one.steps.get().basket == "night-shift"


@pytest.mark.parametrize("act", ["move", "resume"])
def test_of_those_ticked_in_a_basket_what_waits_there_is_meant(operator, act):
    ones = [WorkflowFactory(pended=True, basket="desk") for _ in range(2)]
    for one in ones:
        StepFactory(workflow=one, name="ask", kind="pend", status="waiting", basket="fraud", path=".checks.")
    url, query = f"/workflows/ask/{act}", {"ids": ".".join(str(one.pk) for one in ones), "q": "basket:desk"}
    form = dict(HIDDEN.findall(operator.get(url, query).content.decode()))

    operator.post(url, form | {"to": "night-shift", "reason": "handed over"})

    for one in ones:
        waits = one.steps.filter(status="waiting").values_list("path", "basket")
        assert (".checks.", "fraud") in waits
        assert (".", "desk") not in waits


def test_what_comes_after_one_looked_is_not_hit(operator):
    seen = WorkflowFactory()
    form = asked(operator, "cancel")
    WorkflowFactory()

    operator.post(address("cancel"), form)

    assert [item.workflow_id for item in BatchItem.objects.all()] == [seen.pk]


def test_if_more_match_than_one_saw_it_is_a_conflict_and_shows_the_new_number(operator):
    joins, _ = WorkflowFactory(completed=True), WorkflowFactory(failed=True)
    form = asked(operator, "discard", view="failed")
    Workflow.objects.filter(pk=joins.pk).update(status="failed")

    answer = operator.post(address("discard", view="failed"), form)

    assert answer.status_code == 409
    assert "there are more than the 1 you saw" in answer.content.decode()
    assert '<input type="hidden" name="count" value="2">' in answer.content.decode()
    assert not Batch.objects.exists()


def test_if_fewer_match_the_batch_says_so(operator):
    leaves, _ = WorkflowFactory(failed=True), WorkflowFactory(failed=True)
    form = asked(operator, "discard", view="failed")
    Workflow.objects.filter(pk=leaves.pk).update(status="completed")

    page = operator.post(address("discard", view="failed"), form, follow=True).content.decode()

    assert "of 2 seen; the others no longer matched" in page


def test_a_search_that_was_not_understood_does_nothing(operator):
    """A slip never acts on more than was meant."""
    WorkflowFactory()
    page = operator.get(address("cancel", q="age:soon")).content.decode()

    answer = operator.post(address("cancel", q="age:soon"), {"reason": "x", "count": "1", "newest": "0" * 32})

    assert "disabled" in page
    assert answer.status_code == 409
    assert "Mend the search first" in answer.content.decode()
    assert not Batch.objects.exists()


def test_acts_that_are_not_for_many_are_not_found(operator):
    assert operator.get(address("rerun")).status_code == 404
    assert operator.get(address("explode")).status_code == 404
    assert operator.get(address("cancel", view="nowhere")).status_code == 404


def test_only_operators_begin_and_stop(viewer):
    batch = BatchFactory()

    assert viewer.get(address("cancel")).status_code == 403
    assert viewer.post(f"/batches/{batch.pk}/stop").status_code == 403
    page = viewer.get(f"/batches/{batch.pk}/")
    assert page.status_code == 200
    assert 'id="stop"' not in page.content.decode()


@pytest.fixture
def mixed():
    """One of each result, and one whose turn has not come."""
    batch = BatchFactory(under_way=True, total=4, done=1, skipped=1, failed=1, moved_at=timezone.now())
    BatchItemFactory(batch=batch, done=True, workflow_key="K-done")
    BatchItemFactory(batch=batch, skipped=True, workflow_key="K-skipped")
    BatchItemFactory(batch=batch, result="failed", sentence="It could not be done: no", workflow_key="K-failed")
    BatchItemFactory(batch=batch, workflow_key="K-left")
    return batch


def test_the_page_tells_progress_and_every_result(viewer, mixed):
    page = viewer.get(f"/batches/{mixed.pk}/").content.decode()

    assert 'aria-valuenow="3"' in page
    assert "75 %" in page
    assert "90 a minute, about 0.7 s left." in page
    assert "Cannot cancel three K-1 (completed)." in page
    for word in ("Done", "Skipped", "Failed", "Waiting"):
        assert word in page


@pytest.mark.parametrize("result", ["done", "skipped", "failed", "left"])
def test_results_are_told_apart(viewer, mixed, result):
    page = viewer.get(f"/batches/{mixed.pk}/", {"result": result}).content.decode()

    assert re.findall(r"K-[a-z]+", page) == [f"K-{result}"]


def test_results_are_paged(viewer):
    batch = BatchFactory(total=51)
    items = sorted(str(BatchItemFactory(batch=batch).workflow_id) for _ in range(51))

    first = viewer.get(f"/batches/{batch.pk}/")
    second = viewer.get(first.context["next"])

    assert re.findall(r'id="w-([^"]+)"', first.content.decode()) == items[:50]
    assert re.findall(r'id="w-([^"]+)"', second.content.decode()) == items[50:]
    assert second.context["next"] == ""


def test_results_as_a_spreadsheet(viewer, mixed):
    BatchItem.objects.filter(workflow_key="K-skipped").update(sentence="=HYPERLINK()")

    whole = viewer.get(f"/batches/{mixed.pk}.csv").getvalue().decode()
    some = viewer.get(f"/batches/{mixed.pk}.csv", {"result": "failed"}).getvalue().decode()

    assert whole.splitlines()[0] == "workflow_id,workflow_name,workflow_key,result,sentence,at"
    assert len(whole.splitlines()) == 5
    assert "'=HYPERLINK()" in whole
    assert re.findall(r"K-[a-z]+", some) == ["K-failed"]


def test_stopping_is_one_press_and_says_what_was_left(operator, mixed):
    page = operator.post(f"/batches/{mixed.pk}/stop", follow=True).content.decode()

    mixed.refresh_from_db()
    assert mixed.state == "stopped"
    assert "Stopped: 1 of 4 were not reached." in page
    assert "otto stopped it" in page
    assert "Not reached" in page
    assert 'id="stop"' not in page
    again = operator.post(f"/batches/{mixed.pk}/stop", follow=True).content.decode()
    assert f"Nothing was stopped: batch {mixed.pk} is stopped already." in again
    assert AuditEntry.objects.filter(act="stop").count() == 1


def test_what_people_wrote_is_escaped(viewer):
    batch = BatchFactory(chosen="<b>all</b>", reason="<script>", by="<i>", total=1)
    BatchItemFactory(batch=batch, workflow_name="<u>", workflow_key="<s>", sentence="<em>", result="done")

    for page in (f"/batches/{batch.pk}/", "/batches/"):
        text = viewer.get(page).content.decode()
        assert not re.search(r"<(b>all|script>|i>|u>|s>|em>)", text)
        assert "&lt;b&gt;all" in text


def test_recent_batches_are_listed_and_paged(viewer):
    assert "No batches yet" in viewer.get("/batches/").content.decode()
    made = [BatchFactory().pk for _ in range(51)]

    first = viewer.get("/batches/")
    second = viewer.get(first.context["older"])

    assert re.findall(r'id="b-(\d+)"', first.content.decode()) == [str(pk) for pk in reversed(made[1:])]
    assert re.findall(r'id="b-(\d+)"', second.content.decode()) == [str(made[0])]


def test_a_poll_without_news_is_a_304_and_asks_little(operator, mixed, django_assert_max_num_queries):
    for page in (f"/batches/{mixed.pk}/", "/batches/"):
        first = operator.get(page, headers=HTMX)
        with django_assert_max_num_queries(6):
            second = operator.get(page, headers=HTMX | {"If-None-Match": first["ETag"]})
        assert "<html" not in first.content.decode()
        assert second.status_code == 304


def test_pages_and_the_dialog_ask_little_of_the_database(operator, mixed, django_assert_max_num_queries):
    for _ in range(30):
        WorkflowFactory()

    for page in (f"/batches/{mixed.pk}/", "/batches/", address("cancel")):
        with django_assert_max_num_queries(12):
            operator.get(page)


def test_the_overview_tells_a_batch_in_one_line_and_its_stop_in_another(operator):
    for _ in range(2):
        WorkflowFactory()
    operator.post(address("cancel"), asked(operator, "cancel"))
    carry_on()
    BatchFactory(stopped=True, act="fail", total=90, done=12, stopped_by="vera")

    page = operator.get("/").content.decode()

    assert "cancelled three" not in page
    assert "<b>otto</b> began to cancel 2 workflows" in page
    assert "2 done, “tidy up”" in page
    assert "<b>vera</b> stopped the batch to fail 90 workflows" in page
    assert "78 not reached" in page


@pytest.mark.parametrize(
    "page", ["/batches/77/", "/batches/77.csv", f"/batches/{1 << 63}/", "/batches/?before=x", "/batches/?before=-1"]
)
def test_what_does_not_exist_is_not_found(viewer, page):
    assert viewer.get(page).status_code == 404


def test_an_address_that_cannot_be_meant_is_not_found(viewer, mixed):
    assert viewer.get(f"/batches/{mixed.pk}/?result=nonsense").status_code == 404
    assert viewer.get(f"/batches/{mixed.pk}/?after=nonsense").status_code == 404


@pytest.mark.parametrize(
    ("fields", "word", "sentence"),
    [
        ({}, "Waiting", "It begins as soon as a worker or the scheduler has a hand free, usually within a second."),
        ({"still": 30}, "Waiting", "Nothing moves: it goes on as soon as a worker or the scheduler is there."),
        ({"state": "running", "done": 300, "took": 60}, "Running", "300 a minute, about 3 min left."),
        ({"state": "running", "done": 1, "took": 0}, "Running", "1 of 1,204 have had their turn."),
        ({"state": "done", "done": 1204, "took": 12}, "Done", "All 1,204 have had their turn, in 12 s."),
        (
            {"state": "stopped", "done": 4, "took": 2, "stopped_by": "ada"},
            "Stopped",
            "ada stopped it after 2.0 s; 1,200 of 1,204 were not reached and stay as they are.",
        ),
    ],
)
def test_how_far_it_is_in_words(fields, word, sentence):
    took, still = fields.pop("took", 0), fields.pop("still", 0)
    begun = timezone.now()
    then = begun + timedelta(seconds=took)
    batch = Batch(total=1204, begun_at=begun, **fields)
    if batch.handled:
        batch.started_at, batch.moved_at = begun, then
    if not batch.is_open:
        batch.ended_at = then

    told = progress(batch, then + timedelta(seconds=still))

    assert (told.word, told.sentence) == (word, sentence)

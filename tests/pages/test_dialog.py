"""The dialog before an act: the plan first, the fence in the form, one act however often it is pressed."""

import re

import pytest
from django.utils import timezone

from recovery.models import AuditEntry
from tests.factories import WorkflowFactory
from tests.recovery.world import ago, dead_worker, done, live_worker, opened, pended, put, running
from workflows.models import Event, Step, Workflow

HTMX = {"HX-Request": "true"}
pytestmark = pytest.mark.django_db


@pytest.fixture
def orphan():
    return running(
        None, done("load"), opened("charge_card", 1), key="ORD-1", fence=4, variables={"total": 12}, wake_at=ago(-60)
    )


@pytest.fixture
def broken():
    """Failed in its second step."""
    failed = Workflow(name="three", key="ORD-2", status="failed", finished_at=ago(5), running_at=ago(60), fence=2)
    return put(failed, done("a"), Step(path=".", position=1, name="b", status="failed", failures=1, began_at=ago(9)))


def address(workflow, act):
    return f"/workflows/{workflow.pk}/ask/{act}"


def asked(client, workflow, act, **query):
    """The fields of the form somebody looks at."""
    page = client.get(address(workflow, act), query).content.decode()
    return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page))


@pytest.mark.parametrize("act", ["recover", "rerun", "reopen", "resume", "pause", "cancel", "fail", "discard"])
def test_the_question_is_a_partial_or_a_page_and_changes_nothing(operator, orphan, act):
    dialog = operator.get(address(orphan, act), headers=HTMX).content.decode()
    page = operator.get(address(orphan, act)).content.decode()

    assert "<html" not in dialog
    assert "<html" in page
    assert f'name="seen-{orphan.pk}" value="4"' in dialog
    assert Workflow.objects.get(pk=orphan.pk).fence == 4
    assert not AuditEntry.objects.exists()


def test_the_plan_comes_first_and_the_button_says_what_it_does(operator, orphan):
    page = operator.get(address(orphan, "recover")).content.decode()

    assert "Will recover three ORD-1: resumes at charge_card (attempt 1 of 3), 1 step kept" in page
    assert "not declared idempotent" in page
    assert ">Recover three ORD-1</button>" in page


def test_an_act_is_done_audited_and_answered(operator, orphan):
    form = asked(operator, orphan, "recover", back="/workflows/?view=all")

    answer = operator.post(address(orphan, "recover"), form | {"reason": "looks stuck"}, follow=True)

    orphan.refresh_from_db()
    entry = AuditEntry.objects.get()
    assert answer.redirect_chain == [("/workflows/?view=all", 302)]
    assert (entry.act, entry.actor, entry.via, entry.reason) == ("recover", "otto", "page", "looks stuck")


def test_with_htmx_the_dialog_closes_and_a_toast_says_it(operator, orphan):
    form = asked(operator, orphan, "cancel")

    answer = operator.post(address(orphan, "cancel"), form, headers=HTMX)

    orphan.refresh_from_db()
    assert (answer.status_code, orphan.status) == (204, "cancelled")
    assert "is cancelled" in answer["HX-Trigger"]


def test_if_the_world_moved_it_is_a_conflict_and_shows_the_new_truth(operator, orphan):
    """I10."""
    form = asked(operator, orphan, "fail")
    Workflow.objects.filter(pk=orphan.pk).update(fence=9)

    answer = operator.post(address(orphan, "fail"), form | {"reason": "x"}, headers=HTMX)

    orphan.refresh_from_db()
    assert answer.status_code == 409
    assert "has changed since you looked" in answer.content.decode()
    assert f'name="seen-{orphan.pk}" value="9"' in answer.content.decode()
    assert orphan.status == "running"


def test_a_double_click_is_one_act(operator, broken):
    """I10: even where the second click would find something to do."""
    form = asked(operator, broken, "rerun") | {"reason": "again"}

    first = operator.post(address(broken, "rerun"), form)
    second = operator.post(address(broken, "rerun"), form)

    assert first["Location"] == second["Location"] != f"/workflows/{broken.pk}/"
    assert Workflow.objects.filter(previous=broken.pk).count() == 1
    assert AuditEntry.objects.count() == 1


def test_a_form_without_a_fence_does_nothing(operator, orphan):
    answer = operator.post(address(orphan, "fail"), {"reason": "x"})

    assert answer.status_code == 409
    assert Workflow.objects.get(pk=orphan.pk).status == "running"


@pytest.mark.parametrize(("which", "act"), [("orphan", "fail"), ("broken", "recover")])
def test_failing_and_reviving_need_a_reason(operator, request, which, act):
    workflow = request.getfixturevalue(which)
    form = asked(operator, workflow, act)

    answer = operator.post(address(workflow, act), form | {"reason": "  "})

    assert answer.status_code == 409
    assert "a reason is required" in answer.content.decode()
    assert Workflow.objects.get(pk=workflow.pk).status == workflow.status


def test_what_cannot_be_done_says_why_and_has_no_button_to_press(operator):
    held = running(live_worker(), key="ORD-3")

    page = operator.get(address(held, "recover")).content.decode()

    assert "Nothing would be done: its worker host-1:4711 is alive" in page
    assert re.search(r'<button class="do go" disabled>', page)


def test_reviving_continues_the_same_row(operator, broken):
    form = asked(operator, broken, "recover")

    operator.post(address(broken, "recover"), form | {"reason": "mended"})

    broken.refresh_from_db()
    assert broken.status == "queued"
    assert AuditEntry.objects.get().act == "revive"


def test_running_again_from_a_step_keeps_what_came_before(operator, broken):
    page = operator.get(address(broken, "rerun"), {"step": ".:1"}).content.decode()
    form = asked(operator, broken, "rerun", step=".:1") | {"step": ".:1", "reason": "mended"}

    answer = operator.post(address(broken, "rerun"), form)

    new = Workflow.objects.get(previous=broken.pk)
    assert "Will run again from b: 1 step kept, 1 run again." in page
    assert answer["Location"] == f"/workflows/{new.pk}/"
    assert [step.name for step in new.steps.filter(status="done")] == ["a"]


def test_changed_variables_are_typed_and_shown_as_a_difference(operator, orphan):
    form = asked(operator, orphan, "recover")

    shown = operator.post(address(orphan, "recover"), form | {"v:total": "15", "look": "yes"}).content.decode()
    wrong = operator.post(address(orphan, "recover"), form | {"v:total": '"many"'})
    operator.post(address(orphan, "recover"), form | {"v:total": "15"})

    orphan.refresh_from_db()
    assert "<del>12</del>" in shown
    assert "<ins>15</ins>" in shown
    assert wrong.status_code == 409
    assert "The variable total is a LONG" in wrong.content.decode().replace("&#x27;", "'")
    assert orphan.variables == {"total": 15}


def test_the_counter_of_attempts_can_be_reset(operator):
    dead = running(dead_worker(), opened("charge_card"), recovery_attempts=3)
    form = asked(operator, dead, "recover")

    operator.post(address(dead, "recover"), form | {"reset": "on"})

    dead.refresh_from_db()
    assert dead.recovery_attempts == 0
    assert Event.objects.filter(workflow=dead, type="recovery.reset").exists()


def test_a_basket_is_answered_with_a_result(operator):
    waits = put(
        Workflow(name="three", status="paused", pause_reason="pend", basket="desk", running_at=ago(9)),
        pended("desk", began_at=ago(9)),
    )
    form = asked(operator, waits, "resume")

    operator.post(address(waits, "resume"), form | {"basket": ".|desk", "result": '{"ok": true}'})

    waits.refresh_from_db()
    assert waits.status == "queued"
    assert waits.steps.get().result == {"ok": True}


def test_several_are_asked_about_at_once(operator, orphan):
    other = running(live_worker(), key="ORD-9")
    ids = f"{orphan.pk}.{other.pk}"

    page = operator.get("/workflows/ask/recover", {"ids": ids}).content.decode()
    form = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page))
    answer = operator.post("/workflows/ask/recover", form | {"reason": "all of them"}, follow=True)

    assert "Will recover 1 of 2; 1 is skipped." in page
    assert "Recover: 1 done, 1 refused." in answer.content.decode()


def test_more_than_a_handful_need_the_number_typed(operator, workflow):
    many = [workflow("failed") for _ in range(26)]
    ids = ".".join(str(each.pk) for each in many)
    page = operator.get("/workflows/ask/discard", {"ids": ids}).content.decode()
    form = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page)) | {"reason": "old"}

    refused = operator.post("/workflows/ask/discard", form)
    operator.post("/workflows/ask/discard", form | {"number": "26"})

    assert refused.status_code == 409
    assert "type 26" in refused.content.decode()
    assert Workflow.objects.filter(error__has_key="discarded").count() == 26


def test_only_operators_are_asked(viewer, orphan):
    assert viewer.get(address(orphan, "recover")).status_code == 403
    assert viewer.post(address(orphan, "fail"), {"reason": "x"}).status_code == 403


def test_what_does_not_exist_is_not_found(operator, orphan):
    assert operator.get(address(orphan, "explode")).status_code == 404
    assert operator.get("/workflows/ask/fail", {"ids": "nonsense"}).status_code == 404
    assert operator.get("/workflows/ask/fail").status_code == 404


def test_nobody_is_sent_elsewhere(operator, orphan):
    form = asked(operator, orphan, "cancel", back="https://evil.example/")

    answer = operator.post(address(orphan, "cancel"), form | {"back": "//evil.example/"})

    assert answer["Location"] == f"/workflows/{orphan.pk}/"


def test_a_secret_variable_is_not_shown_and_stays_as_it_is(operator):
    orphan = running(None, key="ORD-5", variables={"api_token": "hush"})
    page = operator.get(address(orphan, "recover")).content.decode()
    form = asked(operator, orphan, "recover")

    operator.post(address(orphan, "recover"), form | {"v:api_token": ""})

    orphan.refresh_from_db()
    assert "hush" not in page
    assert orphan.variables == {"api_token": "hush"}
    assert timezone.now() >= orphan.wake_at


# -- moving -----------------------------------------------------------------------------------------------------------


def test_what_waits_is_moved_through_the_dialog(operator):
    one = WorkflowFactory(key="ORD-1", pended=True, basket="fraud-review")
    WorkflowFactory(pended=True, basket="stock")
    WorkflowFactory(pended=True, basket="retry_queue")

    page = operator.get(f"/workflows/{one.pk}/ask/move").content.decode()
    for place in ("fraud-review", "stock"):
        assert f'<option value="{place}"></option>' in page
    assert '<option value="retry_queue">' not in page
    seen = {f"seen-{one.pk}": one.fence, "token": "t"}
    done = operator.post(
        f"/workflows/{one.pk}/ask/move", seen | {"to": "stock", "basket": ".|fraud-review"}, follow=True
    )

    one.refresh_from_db()
    assert one.basket == "stock"
    assert f"{one} waits in stock." in done.content.decode()


@pytest.mark.parametrize(
    ("to", "sentence"), [("", "name the basket it shall wait in"), ("retry_queue", "nobody looks for work there")]
)
def test_a_move_to_nowhere_is_refused_in_the_dialog(operator, to, sentence):
    one = WorkflowFactory(pended=True, basket="fraud-review")

    response = operator.post(f"/workflows/{one.pk}/ask/move", {f"seen-{one.pk}": one.fence, "to": to})

    assert response.status_code == 409
    assert sentence in response.content.decode()
    one.refresh_from_db()
    assert one.basket == "fraud-review"


def test_what_waits_for_nobody_cannot_be_moved(operator, workflow):
    page = operator.get(f"/workflows/{workflow('queued').pk}/ask/move").content.decode()

    assert "Nothing would be done: nothing of it waits for a person." in page


def test_several_are_moved_together(operator):
    some = [WorkflowFactory(pended=True, basket="fraud-review") for _ in range(2)]
    form = {f"seen-{one.pk}": one.fence for one in some} | {"ids": ".".join(str(one.pk) for one in some)}

    operator.post("/workflows/ask/move", form | {"to": "stock", "reason": "his work", "token": "t"})

    for one in some:
        one.refresh_from_db()
        assert one.basket == "stock"

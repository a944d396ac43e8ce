"""The stock admin: everything can be looked at, nothing of the engine can be touched, acts go through the one place."""

import re

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client

from recovery.models import AlertRule, AuditEntry, Recovery
from tests.recovery.world import dead_worker, done, live_worker, opened, running
from workflows.models import Policy, Status

LIST = "/admin/rekindle/workflow/"
OURS = ("rekindle", "rekindle_recovery")
TUNED = ("policy", "alertrule")
MODELS = [model for label in OURS for model in apps.get_app_config(label).get_models()]


def staff(name: str, *codenames: str) -> Client:
    user = User.objects.create_user(name, is_staff=True)
    ours = Permission.objects.filter(content_type__app_label__in=OURS)
    user.user_permissions.add(*ours.filter(codename__startswith="view_"), *ours.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def viewer(db):
    return staff("vera")


@pytest.fixture
def operator(db):
    return staff("otto", "act_on_workflow")


@pytest.fixture
def chief(db):
    return staff("ada", "add_policy", "change_policy", "delete_policy", "add_alertrule", "change_alertrule")


def ask(client: Client, act: str, *workflows, **more):
    return client.post(LIST, {"action": act, "_selected_action": [one.pk for one in workflows], "index": 0, **more})


def confirm(client: Client, page, reason: str = "because"):
    """Press the button of the confirmation page: what a browser without JavaScript sends."""
    fields = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', page.content.decode())
    given: dict[str, list[str]] = {}
    for name, value in fields:
        given.setdefault(name, []).append(value)
    return client.post(LIST, given | {"reason": reason}, follow=True)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.model_name)
def test_every_model_can_be_looked_at(viewer, model):
    assert admin.site.is_registered(model)
    assert viewer.get(f"/admin/{model._meta.app_label}/{model._meta.model_name}/").status_code == 200


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.model_name)
def test_even_a_superuser_cannot_touch_what_the_engine_writes(admin_client, model):
    if model._meta.model_name in TUNED:
        return
    response = admin_client.get(f"/admin/{model._meta.app_label}/{model._meta.model_name}/add/")

    assert response.status_code == 403


def test_one_workflow_is_shown_and_has_no_save_button(viewer, workflow):
    page = viewer.get(f"{LIST}{workflow('queued').pk}/change/").content.decode()

    assert "_save" not in page


def test_payloads_are_only_for_those_who_may_see_them(viewer, workflow):
    one = workflow("queued", input={"card": "4711-secret"})
    auditor = staff("paul", "see_payload")

    assert "4711-secret" not in viewer.get(f"{LIST}{one.pk}/change/").content.decode()
    assert "4711-secret" in auditor.get(f"{LIST}{one.pk}/change/").content.decode()


@pytest.mark.parametrize(
    "query", ["step/?kind__exact=parallel", "workflow/?pause_reason__exact=sleep", "event/?type__startswith=step"]
)
def test_an_address_cannot_ask_for_what_no_index_answers(viewer, query):
    assert viewer.get(f"/admin/rekindle/{query}").status_code == 400


def test_the_filters_that_are_offered_are_taken(viewer, workflow):
    workflow("failed", key="A"), workflow("queued", key="B")

    page = viewer.get(f"{LIST}?status__exact=failed").content.decode()

    assert ">A<" in page
    assert ">B<" not in page


@pytest.mark.parametrize("act", ["recover", "revive", "cancel", "fail"])
def test_a_viewer_has_no_actions(viewer, workflow, act):
    queued = workflow("queued")

    page = viewer.get(LIST).content.decode()
    ask(viewer, act, queued, confirmed="yes", reason="x")

    queued.refresh_from_db()
    assert f'value="{act}"' not in page
    assert (queued.status, AuditEntry.objects.count()) == ("queued", 0)


def test_the_plan_is_shown_before_anything_is_done(operator):
    orphan = running(dead_worker(), done("s0"), opened("charge_card", 1), key="ORD-1")

    page = ask(operator, "recover", orphan)

    orphan.refresh_from_db()
    text = page.content.decode()
    assert "Will recover three ORD-1: resumes at charge_card (attempt 1 of 3), 1 step kept" in text
    assert "Recover 1 workflow" in text
    assert orphan.worker is not None


def test_what_was_confirmed_is_done_signed_and_told(operator):
    orphan = running(dead_worker(), key="ORD-1")

    told = confirm(operator, ask(operator, "recover", orphan), "the host is gone")

    orphan.refresh_from_db()
    assert orphan.worker is None
    assert "Three ORD-1 is due again." in told.content.decode()
    noted = AuditEntry.objects.get()
    assert (noted.actor, noted.via, noted.act, noted.reason) == ("otto", "admin", "recover", "the host is gone")
    assert Recovery.objects.get().actor == "otto"


@pytest.mark.parametrize(
    ("act", "before", "after"),
    [("fail", "queued", "failed"), ("cancel", "queued", "cancelled"), ("revive", "failed", "queued")],
)
def test_the_other_actions(operator, workflow, act, before, after):
    one = workflow(before)

    confirm(operator, ask(operator, act, one))

    one.refresh_from_db()
    assert one.status == after
    assert AuditEntry.objects.get().act == act


def test_each_item_has_its_own_result(operator, workflow):
    """A refused one says why and does not stop the others."""
    first, held, last = workflow("failed", key="A"), running(live_worker(), key="B"), workflow("failed", key="C")

    told = confirm(operator, ask(operator, "recover", first, held, last)).content.decode()

    assert "Order A is due again." in told
    assert "Cannot recover three B (running): its worker host-1:4711 is alive" in told
    assert "Order C is due again." in told
    assert sorted(AuditEntry.objects.values_list("subject_name", "refused"))[2][1] != ""


def test_what_changed_in_between_is_refused(operator, workflow):
    one = workflow("queued", key="A")
    page = ask(operator, "fail", one)
    one.fence = 5
    one.save()

    told = confirm(operator, page).content.decode()

    one.refresh_from_db()
    assert "has changed since you looked" in told
    assert one.status == Status.QUEUED


def test_a_reason_is_asked_for(operator, workflow):
    one = workflow("queued")

    page = confirm(operator, ask(operator, "fail", one), " ")

    one.refresh_from_db()
    assert "a reason is required" in page.content.decode()
    assert one.status == Status.QUEUED


def test_too_many_are_refused(operator, workflow):
    for number in range(101):
        workflow("queued", key=str(number))

    response = operator.post(
        LIST,
        {
            "action": "fail",
            "_selected_action": ["x"],
            "index": 0,
            "select_across": 1,
            "confirmed": "yes",
            "reason": "x",
        },
        follow=True,
    )

    assert "at most 100 workflows" in response.content.decode()
    assert not AuditEntry.objects.exists()


def test_hostile_names_are_text(operator, workflow):
    one = workflow("queued", key="<script>alert(1)</script>")

    assert "<script>alert" not in ask(operator, "recover", one).content.decode()


def policy_form(**changes) -> dict:
    return {"name": "order", "on_run_limit": "flag", "mode": "", "reason": "night shift"} | changes


def test_a_changed_policy_is_audited_with_what_it_was(chief):
    chief.post("/admin/rekindle/policy/add/", policy_form())
    policy = Policy.objects.get()
    chief.post(f"/admin/rekindle/policy/{policy.pk}/change/", policy_form(paused="on", concurrency="3"))

    created, changed = AuditEntry.objects.order_by("pk")
    assert (created.act, changed.act, changed.subject, changed.subject_name) == ("create", "change", "policy", "order")
    assert (changed.before, changed.after) == (
        {"paused": False, "concurrency": None},
        {"paused": True, "concurrency": 3},
    )
    assert (changed.actor, changed.via, changed.reason) == ("ada", "admin", "night shift")
    policy.refresh_from_db()
    assert policy.changed_by == "ada"


@pytest.mark.parametrize("how", ["one", "several"])
def test_a_deleted_policy_is_audited(chief, how):
    policy = Policy.objects.create(name="order", mode="observe")
    if how == "one":
        chief.post(f"/admin/rekindle/policy/{policy.pk}/delete/", {"post": "yes"})
    else:
        selected = {"action": "delete_selected", "_selected_action": [policy.pk], "post": "yes", "index": 0}
        chief.post("/admin/rekindle/policy/", selected)

    noted = AuditEntry.objects.get()
    assert (noted.act, noted.subject_id, noted.before["mode"]) == ("delete", str(policy.pk), "observe")
    assert not Policy.objects.exists()


def test_a_changed_rule_is_audited(chief):
    rule = AlertRule.objects.create(name="many", metric="recoveries", threshold=10)
    form = {
        "name": "many",
        "metric": "recoveries",
        "comparison": ">",
        "threshold": "20",
        "window": "3600",
        "lasting": "0",
        "severity": "warning",
        "enabled": "on",
    }

    chief.post(f"/admin/rekindle_recovery/alertrule/{rule.pk}/change/", form)

    noted = AuditEntry.objects.get()
    assert (noted.subject, noted.before, noted.after) == ("rule", {"threshold": 10.0}, {"threshold": 20.0})


@pytest.mark.parametrize("word", ["{pk}", "ORD-1", "order"])
def test_a_workflow_is_found_by_the_whole_of_its_id_key_or_name(viewer, workflow, word):
    here, elsewhere = workflow(key="ORD-1"), workflow(name="other", key="ORD-10")

    page = viewer.get("/admin/rekindle/workflow/", {"q": word.format(pk=here.pk)}).content.decode()

    assert str(here.pk) in page
    assert str(elsewhere.pk) not in page


@pytest.mark.parametrize("model", ["rekindle/event", "rekindle/step", "rekindle_recovery/recovery"])
def test_what_is_no_id_finds_nothing_and_breaks_nothing(viewer, model):
    assert viewer.get(f"/admin/{model}/", {"q": "no id\0"}).status_code == 200


def test_an_admin_page_does_not_count_without_end(viewer, workflow, monkeypatch):
    monkeypatch.setattr("recovery.admin.finding.MOST", 2)
    for _ in range(3):
        workflow()

    assert "2 workflows" in viewer.get("/admin/rekindle/workflow/").content.decode()

"""One name: how its workflows do, and the policy that stops the bleeding."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from recovery.models import AuditEntry
from tests.factories import PolicyFactory, RecoveryFactory, WorkerFactory, WorkflowFactory
from workflows.models import Policy

HTMX = {"HX-Request": "true"}
CALM = {"concurrency": "2", "on_run_limit": "fail", "run_limit": "1.5", "reason": "the supplier is slow", "seen": ""}


def text(response):
    return response.content.decode()


@pytest.fixture
def admin(db):
    user = User.objects.create_user("ada")
    names = ["view_workflow", "configure"]
    user.user_permissions.add(*Permission.objects.filter(codename__in=names, content_type__app_label="rekindle"))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def orders(db):
    WorkflowFactory(running=True, name="order", worker=WorkerFactory(knows={"order": [1, "f"]}))
    WorkflowFactory(name="order")
    for _ in range(3):
        WorkflowFactory(completed=True, name="order")
    for _ in range(2):
        WorkflowFactory(failed=True, name="order", error={"type": "Timeout", "message": "no answer"})
    WorkflowFactory(failed=True, name="invoice", error={"type": "Else", "message": "elsewhere"})
    RecoveryFactory(recovered=True, workflow_name="order")


def test_it_tells_of_this_name_alone(viewer, orders):
    seen = viewer.get("/names/order/").context["seen"]

    assert (seen.now["running"], seen.now["waiting"], seen.now["due"], seen.now["workers"]) == (1, 1, 1, 1)
    assert (seen.counts.completed, seen.counts.failed, seen.counts.success) == (3, 2, 0.6)
    assert seen.counts.recovered == 1


def test_errors_are_grouped(viewer, orders):
    [group] = viewer.get("/names/order/").context["seen"].errors

    assert (group["type"], group["message"], group["count"]) == ("Timeout", "no answer", 2)
    assert "elsewhere" not in text(viewer.get("/names/order/"))


def test_an_admin_puts_a_policy_in_force_and_it_is_audited(admin, orders):
    response = admin.post("/names/order/", CALM | {"paused": "on", "mode": "observe"})

    policy, entry = Policy.objects.get(name="order"), AuditEntry.objects.get()
    assert response.status_code == 302
    assert (policy.paused, policy.concurrency, policy.run_limit, policy.on_run_limit) == (True, 2, 1.5, "fail")
    assert (policy.mode, policy.stale_after, policy.changed_by) == ("observe", None, "ada")
    assert (entry.act, entry.subject, entry.subject_name) == ("create", "policy", "order")
    assert (entry.reason, entry.after["paused"]) == ("the supplier is slow", True)
    assert "order is paused" in text(admin.get("/names/order/"))


def test_a_change_says_only_what_differs(admin, orders):
    PolicyFactory(name="order", concurrency=2)
    seen = admin.get("/names/order/").context["seen"].seen

    admin.post("/names/order/", {"concurrency": "5", "on_run_limit": "flag", "reason": "more room", "seen": seen})

    entry = AuditEntry.objects.get()
    assert entry.before == {"concurrency": 2, "reason": ""}
    assert entry.after == {"concurrency": 5, "reason": "more room"}


def test_who_has_not_seen_the_last_change_changes_nothing(admin, orders):
    PolicyFactory(name="order", concurrency=7, changed_by="otto")

    response = admin.post("/names/order/", CALM)

    assert response.status_code == 409
    assert "was changed by otto meanwhile" in text(response)
    assert Policy.objects.get().concurrency == 7


@pytest.mark.parametrize(
    "wrong",
    [
        {"reason": ""},
        {"concurrency": "0"},
        {"stale_after": "-1"},
        {"run_limit": "nan"},
        {"mode": "panic"},
        {"on_run_limit": "x"},
    ],
)
def test_what_makes_no_sense_is_refused(admin, orders, wrong):
    response = admin.post("/names/order/", CALM | wrong)

    assert response.status_code == 409
    assert "Nothing was changed." in text(response)
    assert not Policy.objects.exists()
    assert not AuditEntry.objects.exists()


def test_only_admins_change_a_policy(viewer, operator, orders):
    for client in (viewer, operator):
        response = client.post("/names/order/", CALM)
        assert response.status_code == 403
        assert "rekindle.configure" in text(response)
        assert '<button class="go">Put in force' not in text(client.get("/names/order/"))
    assert Client().post("/names/order/", CALM).status_code == 302
    assert not Policy.objects.exists()


def test_a_form_from_elsewhere_changes_nothing(orders):
    user = User.objects.create_superuser("root")
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)

    assert client.post("/names/order/", CALM).status_code == 403
    assert not Policy.objects.exists()


@pytest.mark.parametrize("name", ["nothing", "*", "x" * 101])
def test_a_name_nobody_knows_is_not_found(admin, name):
    assert admin.get(f"/names/{name}/").status_code == 404
    assert admin.post(f"/names/{name}/", CALM).status_code == 404
    assert not Policy.objects.exists()


def test_any_name_has_a_page(viewer):
    WorkflowFactory(name="a/b <script>c", failed=True, error={"type": "<script>", "message": "<script>"})

    response = viewer.get("/names/a%2Fb%20%3Cscript%3Ec/")

    assert response.status_code == 200
    assert "<script>" not in text(response)
    assert "/names/a/b%20%3Cscript%3Ec/" in text(viewer.get("/"))


def test_the_page_and_its_polls_ask_little(admin, orders, django_assert_max_num_queries):
    with django_assert_max_num_queries(12):
        page = admin.get("/names/order/")
    with django_assert_max_num_queries(6):
        poll = admin.get("/names/order/", headers=HTMX)

    assert " style=" not in text(page)
    assert "<html" not in text(poll)
    assert "<form" not in text(poll)
    assert poll["ETag"]


def test_a_name_is_paused_and_let_go_with_one_reason_and_nothing_else_changes(admin, orders):
    PolicyFactory(name="order", concurrency=2)
    seen = admin.get("/names/order/").context["seen"].seen

    paused = admin.post("/names/order/", {"pause": "yes", "reason": "wrong prices", "seen": seen}, follow=True)

    policy, entry = Policy.objects.get(name="order"), AuditEntry.objects.get()
    assert (policy.paused, policy.concurrency, policy.reason) == (True, 2, "wrong prices")
    assert "order is paused: new work is accepted and not started." in text(paused)
    assert (entry.before, entry.after) == (
        {"paused": False, "reason": ""},
        {"paused": True, "reason": "wrong prices"},
    )
    seen = paused.context["seen"].seen
    admin.post("/names/order/", {"pause": "no", "reason": "prices mended", "seen": seen})
    assert not Policy.objects.get(name="order").paused


@pytest.mark.parametrize("given", [{"pause": "yes", "reason": ""}, {"pause": "perhaps", "reason": "x"}])
def test_a_pause_without_a_reason_or_a_meaning_is_refused(admin, orders, given):
    response = admin.post("/names/order/", given | {"seen": ""})

    assert response.status_code == 409
    assert not Policy.objects.exists()


def test_the_longer_form_leaves_a_pause_as_it_is(admin, orders):
    PolicyFactory(name="order", paused=True)

    page = text(admin.get("/names/order/"))

    assert '<input type="hidden" name="paused" value="on">' in page
    assert "Let order start again" in page


def test_an_empty_field_says_what_is_in_force_without_it(admin, orders):
    PolicyFactory(name="*", mode="observe")

    page = text(admin.get("/names/order/"))

    assert "as everybody: observe" in page
    assert 'placeholder="30"' in page
    assert 'placeholder="2592000, or 30 d"' in page
    assert 'placeholder="no limit"' in page


def test_the_errors_of_a_group_are_found_in_the_list(viewer, orders):
    [group] = viewer.get("/names/order/").context["seen"].errors

    found = viewer.get("/workflows/", {"view": "failed", "q": group["search"]})

    assert {row.workflow.name for row in found.context["page"].rows} == {"order"}
    assert len(found.context["page"].rows) == 2

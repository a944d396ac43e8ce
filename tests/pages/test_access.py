import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from recovery.models import AuditEntry
from recovery.urls import urlpatterns
from workflows.models import Policy

PAGES = [
    "/",
    "/rail",
    "/workflows/",
    "/workflows.csv",
    "/workflows.jsonl",
    "/views/new",
    "/recovery/",
    "/workers/",
    "/audit/",
    "/audit.csv",
    "/batches/",
    "/charts/throughput.json",
    "/charts/throughput.csv",
]
ACTS = ["ask/recover", "ask/fail"]


@pytest.mark.parametrize("page", PAGES)
def test_the_anonymous_are_sent_to_login(db, page):
    response = Client().get(page)

    assert response.status_code == 302
    assert response["Location"].startswith("/login/?next=")


@pytest.mark.parametrize("act", ACTS)
def test_the_anonymous_cannot_act(workflow, act):
    queued = workflow("queued")

    response = Client().post(f"/workflows/{queued.pk}/{act}", {"reason": "x"})

    queued.refresh_from_db()
    assert response.status_code == 302
    assert queued.status == "queued"


def test_a_poll_after_the_session_is_over_gets_no_login_form(db):
    assert Client().get("/workflows/", headers={"HX-Request": "true"}).status_code == 401


@pytest.mark.parametrize("page", PAGES)
def test_without_the_permission_a_page_names_it(nobody, page):
    response = nobody.get(page)

    assert response.status_code == 403
    assert "rekindle.view_workflow" in response.content.decode()


@pytest.mark.parametrize("act", ACTS)
def test_a_viewer_sees_and_cannot_act(viewer, workflow, act):
    queued = workflow("queued", key="ORD-7")

    page = viewer.get("/workflows/").content.decode()
    response = viewer.post(f"/workflows/{queued.pk}/{act}", {"reason": "x"})

    queued.refresh_from_db()
    assert "ORD-7" in page
    assert f"/{act}" not in page
    assert response.status_code == 403
    assert "rekindle.act_on_workflow" in response.content.decode()
    assert queued.status == "queued"


@pytest.mark.parametrize("page", PAGES)
def test_every_page_has_a_strict_policy(viewer, nobody, page):
    for client in (viewer, nobody, Client()):
        policy = client.get(page)["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy


def test_no_page_has_inline_styles_or_scripts(operator, workflow):
    workflow("queued")

    for page in (operator.get("/workflows/"), Client().get("/login/")):
        text = page.content.decode()
        assert " style=" not in text
        assert "<style" not in text
        assert "<script>" not in text
        assert "onclick" not in text


def test_the_admin_changes_policies_and_nothing_of_the_engine(workflow):
    one = workflow("queued")
    boss = Client()
    boss.force_login(User.objects.create_superuser("boss"))

    for model in ("workflow", "step", "event", "signal", "worker", "policy"):
        assert boss.get(f"/admin/rekindle/{model}/").status_code == 200
    assert boss.get("/admin/rekindle/workflow/add/").status_code == 403
    assert boss.post(f"/admin/rekindle/workflow/{one.pk}/delete/", {"post": "yes"}).status_code == 403
    assert boss.post(f"/admin/rekindle/workflow/{one.pk}/change/", {"name": "x"}).status_code == 403
    made = boss.post("/admin/rekindle/policy/add/", {"name": "order", "on_run_limit": "flag", "reason": "calm"})
    assert made.status_code == 302


# What each URL needs to be reached with GET and with POST; None: it does not answer to that.
SEE, ACT, CONFIGURE = "view_workflow", "act_on_workflow", "configure"
NEEDED = {
    "overview": (SEE, None),
    "rail": (SEE, None),
    "workflows": (SEE, None),
    "ask": (ACT, ACT),
    "workflow": (SEE, None),
    "payload": (SEE, None),
    "ask_many": (ACT, ACT),
    "batches": (SEE, None),
    "batch": (SEE, None),
    "stop_batch": (None, ACT),
    "batch_csv": (SEE, None),
    "name": (SEE, CONFIGURE),
    "recovery": (SEE, None),
    "sweep": (ACT, ACT),
    "change_mode": (None, CONFIGURE),
    "change_rule": (None, CONFIGURE),
    "workers": (SEE, None),
    "kill": (ACT, ACT),
    "start_demo": (None, ACT),
    "audit": (SEE, None),
    "audit_csv": (SEE, None),
    "workflows_csv": (SEE, None),
    "workflows_jsonl": (SEE, None),
    "keep_view": (SEE, SEE),
    "notes": (ACT, ACT),
    "behind": (SEE, None),
    "saved_view": (SEE, SEE),
    "chart": (SEE, None),
}
OPEN = {"healthz"}
NUMBERED = {"change_rule", "kill", "saved_view", "batch", "stop_batch", "batch_csv"}
GIVEN = {"act": "recover", "kind": "workflow", "what": "input", "name": "order"}


def address(pattern, pk):
    wanted = pattern.pattern.converters or pattern.pattern.regex.groupindex
    given = GIVEN | {"pk": 1 if pattern.name in NUMBERED else pk}
    if pattern.name == "chart":
        given |= {"name": "throughput", "form": "json"}
    return reverse(f"rekindle:{pattern.name}", kwargs={key: given[key] for key in wanted})


def test_every_url_says_whom_it_is_for():
    assert {pattern.name for pattern in urlpatterns} == set(NEEDED) | OPEN


@pytest.mark.parametrize("role", [(), (SEE,), (SEE, ACT), (SEE, CONFIGURE)])
@pytest.mark.parametrize("pattern", [one for one in urlpatterns if one.name not in OPEN], ids=lambda one: one.name)
def test_a_url_opens_to_its_role_and_to_nobody_else(workflow, pattern, role):
    url = address(pattern, workflow("queued").pk)
    user = User.objects.create_user("somebody")
    user.user_permissions.add(*Permission.objects.filter(codename__in=role, content_type__app_label="rekindle"))
    client = Client()
    client.force_login(user)

    for needed, response in zip(NEEDED[pattern.name], (client.get(url), client.post(url)), strict=True):
        if needed is None:
            assert response.status_code == 405
        else:
            assert (response.status_code == 403) == (needed not in role)
    done = AuditEntry.objects.filter(refused="")
    assert {entry.act for entry in done} <= ({"sweep"} if ACT in role else set())  # which needs no further word
    assert not Policy.objects.exists()

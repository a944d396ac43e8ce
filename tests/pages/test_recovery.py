"""The recovery page: how many, how fast, after which death; and what admins set there."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from recovery.models import AlertRule, AuditEntry, Batch, Duty, Recovery
from recovery.outcomes import plan_in_words
from tests.factories import (
    AlertRuleFactory,
    DutyFactory,
    PolicyFactory,
    RecoveryFactory,
    StepFactory,
    WorkerFactory,
    WorkflowFactory,
)
from workflows.models import Policy

HTMX = {"HX-Request": "true"}


def text(response):
    return response.content.decode()


@pytest.fixture
def admin(db):
    user = User.objects.create_user("ada")
    names = ["view_workflow", "act_on_workflow", "configure"]
    user.user_permissions.add(*Permission.objects.filter(codename__in=names, content_type__app_label="rekindle"))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def a_death(db):
    """One worker died: two run again, one was given up; and somebody recovered another by hand."""
    dead = WorkerFactory(dead=True, host="host-2", pid=812)
    of = {"worker": dead.pk, "worker_name": str(dead)}
    RecoveryFactory(recovered=True, step="charge_card", in_step=True, plan={"kept": 2, "again": [{"name": "x"}]}, **of)
    RecoveryFactory(recovered=True, **of)
    RecoveryFactory(gave_up=True, **of)
    RecoveryFactory(reason="manual", detected_by="operator", actor="otto", note="it hung")
    return dead


def test_tiles_say_how_many_and_how_fast(viewer, a_death):
    figures = viewer.get("/recovery/").context["seen"].figures

    assert (figures["detected"], figures["recovered"], figures["given_up"]) == (4, 2, 1)
    assert (figures["detect_median"], figures["resume_p95"], figures["share"]) == (0.6, 0.8, 0.75)


def test_a_death_is_one_incident(viewer, a_death):
    page = text(viewer.get("/recovery/"))

    assert "Worker <code>host-2:812</code> died" in page
    assert ": 3 held, 2 running again in 1.4 s, 1 given up." in page
    assert len(viewer.get("/recovery/").context["seen"].incidents) == 1


def test_workers_that_died_together_are_one_incident(viewer, a_death):
    RecoveryFactory(recovered=True, worker=a_death.pk + 1, worker_name="host-2:813")
    early = timezone.now() - timedelta(hours=3)
    RecoveryFactory(recovered=True, worker=a_death.pk + 2, worker_name="host-1:7", last_seen_at=early)

    (restart, said), (alone, _) = viewer.get("/recovery/").context["seen"].incidents

    assert (len(restart.workers), restart.held, restart.again, restart.given_up) == (2, 4, 3, 1)
    assert str(said).startswith("Restart: 2 workers on host-2 died together ")
    assert [name for _, name in alone.workers] == ["host-1:7"]


def test_the_recoveries_of_an_incident_can_be_listed_alone(viewer, a_death):
    RecoveryFactory(worker=a_death.pk + 1)

    seen = viewer.get(f"/recovery/?died={a_death.pk}").context["seen"]

    assert {row["worker"] for row in seen.recoveries} == {a_death.pk}
    assert len(seen.recoveries) == 3
    assert viewer.get("/recovery/?died=x").status_code == 404


def test_the_chart_counts_by_reason(viewer, a_death):
    """S0-100."""
    RecoveryFactory(reason="stale_detection")

    figure = viewer.get("/charts/reasons.json?range=1h").json()

    counts = {trace["name"]: sum(trace["y"]) for trace in figure["data"]}
    assert counts == {"infrastructure restart": 3, "stale detection": 1, "by hand": 1}


def test_every_recovery_tells_attempt_step_plan_and_outcome(viewer, a_death):
    page = text(viewer.get("/recovery/"))

    for said in ("1 of 3", "charge_card", "2 steps kept; x runs again", "its worker died", "otto", "(it hung)"):
        assert said in page
    for outcome in ("Recovered", "Given up", "Under way"):
        assert outcome in page


def test_recoveries_are_paged_by_their_number(viewer):
    made = [RecoveryFactory(workflow_key=f"N-{n}") for n in range(52)]

    first = viewer.get("/recovery/")
    second = viewer.get("/recovery/", {"before": first.context["seen"].older})

    assert [row["id"] for row in first.context["seen"].recoveries] == [one.pk for one in made[:1:-1]]
    assert [row["id"] for row in second.context["seen"].recoveries] == [made[1].pk, made[0].pk]
    assert second.context["seen"].older is None
    assert viewer.get("/recovery/?before=x").status_code == 404


def test_the_questions_of_the_seeds_are_panels(viewer, a_death):
    """S0-100, S0-101, S2-076, S2-077."""
    again = RecoveryFactory(attempt=3, workflow_name="order")
    now = timezone.now()
    late = WorkflowFactory(completed=True, lateness=900, started_at=now)
    stuck = WorkflowFactory(due_at=now - timedelta(hours=3), wake_at=now - timedelta(hours=3))

    seen = viewer.get("/recovery/").context["seen"]

    assert {(row["reason"], row["count"]) for row in seen.reasons} == {("infrastructure_restart", 4), ("manual", 1)}
    assert str(again.workflow_id) in [row["workflow_id"] for row in seen.most[:2]]
    assert [row["id"] for row in seen.late] == [str(late.pk)]
    assert [row["id"] for row in seen.stuck] == [str(stuck.pk)]


def test_dead_letters_can_be_inspected_by_all_and_revived_by_operators(viewer, operator):
    letter = WorkflowFactory(failed=True, name="invoice", error={"type": "Timeout", "message": "no answer"})
    WorkflowFactory(failed=True, key="aside", error={"message": "x", "discarded": {"by": "ada"}})

    seen, acting = text(viewer.get("/recovery/")), text(operator.get("/recovery/"))

    assert f'href="/workflows/{letter.pk}/"' in seen
    assert "no answer" in seen
    assert "aside" not in seen
    assert "/ask/recover" not in seen
    assert f"/workflows/{letter.pk}/ask/recover" in acting


def test_dead_letters_are_grouped_by_error_and_step(viewer, operator):
    failed = {"failed": True, "name": "invoice", "error": {"type": "StepFailed", "message": "step send failed: …"}}
    for kind in ("Timeout", "Timeout", "Refused"):
        StepFactory(workflow=WorkflowFactory(**failed), name="send", status="failed", error={"type": kind})
    given_up = {"type": "RecoveryFailed", "message": "3 attempts", "open": ["render"]}
    WorkflowFactory(failed=True, name="export", error=given_up)

    groups = viewer.get("/recovery/").context["seen"].letters

    assert [(one["name"], one["step"], one["type"], one["count"]) for one in groups[:1]] == [
        ("invoice", "send", "Timeout", 2)
    ]
    assert {(one["step"], one["type"]) for one in groups[1:]} == {("send", "Refused"), ("render", "RecoveryFailed")}
    assert groups[0]["search"] == "is:dead-letter name:invoice step:send error:Timeout"
    assert "Revive all…" in text(operator.get("/recovery/"))
    assert "Revive" not in text(viewer.get("/recovery/"))


def test_all_of_a_group_become_a_batch_without_those_put_aside(operator):
    """However many there are, and nothing of another group."""
    failed = {"failed": True, "name": "invoice", "error": {"type": "StepFailed", "message": "step send failed: …"}}
    wanted = [WorkflowFactory(**failed) for _ in range(2)]
    aside = WorkflowFactory(**failed | {"error": failed["error"] | {"discarded": {"by": "ada"}}})
    for one in (*wanted, aside):
        StepFactory(workflow=one, name="send", status="failed", error={"type": "Timeout"})
    StepFactory(workflow=WorkflowFactory(**failed), name="send", status="failed", error={"type": "Refused"})
    page = text(operator.get("/recovery/"))
    url = unescape(re.search(r'href="([^"]*/ask/revive\?all=yes[^"]*)"', page)[1])

    form = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', text(operator.get(url))))
    operator.post(url, form | {"reason": "the mail server is back"})

    batch = Batch.objects.get()
    assert (batch.act, batch.chosen) == ("revive", "is:dead-letter name:invoice step:send error:Timeout")
    assert {item.workflow_id for item in batch.items.all()} == {one.pk for one in wanted}


@pytest.mark.parametrize("odd", [{"name": "in*"}, {"name": 'in"voice'}, {"error": {"message": "of no type"}}])
def test_a_group_that_no_search_says_exactly_is_acted_on_by_its_ids(operator, odd):
    ones = [
        WorkflowFactory(**{"failed": True, "name": "invoice", "error": {"type": "Timeout"}} | odd) for _ in range(2)
    ]

    page = text(operator.get("/recovery/"))

    assert "Revive 2…" in page
    assert "all=yes" not in page
    assert all(str(one.pk) in re.search(r"/ask/revive\?ids=([^&]*)", page)[1] for one in ones)


def test_a_group_at_no_step_is_exact_unless_another_failed_alike_at_one(viewer):
    WorkflowFactory(failed=True, name="invoice", error={"type": "Timeout"})
    (alone,) = viewer.get("/recovery/").context["seen"].letters
    inside = WorkflowFactory(failed=True, name="invoice", error={"type": "StepFailed"})
    StepFactory(workflow=inside, name="send", status="failed", error={"type": "Timeout"})

    groups = {one["step"]: one["is_exact"] for one in viewer.get("/recovery/").context["seen"].letters}

    assert alone["is_exact"]
    assert groups == {"": False, "send": True}


def test_what_a_group_of_dead_letters_is_searched_by_finds_it(viewer):
    failed = {"failed": True, "name": "invoice", "error": {"type": "StepFailed", "message": "step send it failed: …"}}
    for _ in range(2):
        StepFactory(workflow=WorkflowFactory(**failed), name="send it", status="failed", error={"type": "Timeout"})
    WorkflowFactory(**failed)
    group = viewer.get("/recovery/").context["seen"].letters[0]

    page = text(viewer.get("/workflows/", {"q": group["search"]}))

    assert page.count("data-row") == group["count"] == 2


def test_an_operator_sees_what_a_sweep_would_do_and_runs_it(operator, viewer):
    dead = WorkerFactory(dead=True)
    held = WorkflowFactory(running=True, worker=dead, name="order", key="ORD-1")

    foreseen = text(operator.get("/recovery/sweep"))

    held.refresh_from_db()
    assert "order ORD-1 would run again, recovery 1 of 3" in foreseen
    assert held.worker == dead
    assert not any(model.objects.exists() for model in (AuditEntry, Duty, Recovery))

    response = operator.post("/recovery/sweep", headers=HTMX)

    held.refresh_from_db()
    assert response.status_code == 204
    assert "The sweep found 1, gave back 1" in response["HX-Trigger"]
    assert held.worker is None
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.subject, entry.actor, entry.after["recovered"]) == ("sweep", "duty", "otto", 1)
    assert viewer.get("/recovery/").context["seen"].sweeps[0]["ran_by"] == "operator"
    assert "What would it do?" not in text(viewer.get("/recovery/"))


def test_without_scripts_a_sweep_is_told_on_the_page(operator):
    page = operator.post("/recovery/sweep", follow=True)

    assert "The sweep found 0, gave back 0 and gave up 0." in text(page)


def test_sweeps_are_told(viewer):
    DutyFactory(name="sweep", found=7, recovered=6, failed=1)

    [sweep] = viewer.get("/recovery/").context["seen"].sweeps

    assert (sweep["found"], sweep["recovered"], sweep["failed"]) == (7, 6, 1)


def test_an_admin_changes_a_threshold_and_it_is_audited(admin):
    rule = AlertRuleFactory(name="many", threshold=10)

    response = admin.post(f"/recovery/rules/{rule.pk}", {"threshold": "25", "enabled": "on", "reason": "noise"})

    rule.refresh_from_db()
    entry = AuditEntry.objects.get()
    assert response.status_code == 302
    assert (rule.threshold, rule.enabled, rule.changed_by) == (25, True, "ada")
    assert (entry.actor, entry.subject, entry.reason) == ("ada", "rule", "noise")
    assert (entry.before, entry.after) == ({"threshold": 10}, {"threshold": 25})


@pytest.mark.parametrize(
    "given", [{"threshold": "5"}, {"threshold": "x", "reason": "y"}, {"threshold": "nan", "reason": "y"}]
)
def test_a_threshold_without_a_reason_or_a_number_changes_nothing(admin, given):
    rule = AlertRuleFactory(threshold=10)

    response = admin.post(f"/recovery/rules/{rule.pk}", given)

    assert response.status_code == 409
    assert "Nothing was changed." in text(response)
    assert AlertRule.objects.get(pk=rule.pk).threshold == 10
    assert not AuditEntry.objects.exists()


def test_a_rule_that_is_gone_is_not_found(admin):
    assert admin.post("/recovery/rules/999999", {"threshold": "1", "reason": "y"}).status_code == 404


def test_an_admin_switches_the_mode_for_everybody(admin):
    response = admin.post("/recovery/mode", {"mode": "observe", "reason": "the database moves", "seen": ""})

    policy, entry = Policy.objects.get(name="*"), AuditEntry.objects.get()
    assert response.status_code == 302
    assert (policy.mode, policy.changed_by, policy.reason) == ("observe", "ada", "the database moves")
    assert (entry.act, entry.subject, entry.subject_name, entry.reason) == (
        "create",
        "policy",
        "*",
        "the database moves",
    )
    assert "Mode: observe" in text(admin.get("/recovery/"))


def test_who_has_not_seen_the_last_change_changes_nothing(admin):
    PolicyFactory(name="*", mode="off", changed_by="otto")

    blind = admin.post("/recovery/mode", {"mode": "observe", "reason": "x", "seen": ""})
    seen = admin.get("/recovery/").context["seen"].seen
    sighted = admin.post("/recovery/mode", {"mode": "enforce", "reason": "x", "seen": seen})

    assert blind.status_code == 409
    assert "was changed by otto meanwhile" in text(blind)
    assert sighted.status_code == 302
    assert Policy.objects.get(name="*").mode == "enforce"


def test_an_unknown_mode_is_refused(admin):
    assert admin.post("/recovery/mode", {"mode": "panic", "reason": "x"}).status_code == 409


@pytest.mark.parametrize("url", ["/recovery/mode", "/recovery/rules/1"])
def test_only_admins_configure(viewer, operator, admin, url):
    for client in (viewer, operator):
        response = client.post(url, {"mode": "off", "threshold": "1", "reason": "x"})
        assert response.status_code == 403
        assert "rekindle.configure" in text(response)
    assert Client().post(url, {}).status_code == 302
    assert admin.get(url).status_code == 405
    assert not Policy.objects.exists()
    assert 'action="/recovery/' not in text(operator.get("/recovery/"))


def test_the_page_and_its_polls_ask_little(operator, a_death, django_assert_max_num_queries):
    WorkflowFactory(failed=True)

    with django_assert_max_num_queries(12):
        page = operator.get("/recovery/")
    with django_assert_max_num_queries(6):
        poll = operator.get("/recovery/", headers=HTMX)
    again = operator.get("/recovery/", headers=HTMX | {"If-None-Match": poll["ETag"]})

    assert "<html" not in text(poll)
    assert "<form" not in text(poll)
    assert " style=" not in text(page)
    assert again.status_code == 304


def test_hostile_text_is_shown_as_text(viewer):
    WorkflowFactory(failed=True, name="<b>n", key="<script>k", error={"type": "<i>", "message": "<script>m"})
    RecoveryFactory(workflow_name="<script>n", step="<script>s", worker=1, worker_name="<script>w", note="<script>")

    assert "<script>" not in text(viewer.get("/recovery/"))


def test_nothing_yet_teaches(viewer):
    page = text(viewer.get("/recovery/"))

    assert "Nothing had to be recovered" in page
    assert "No dead letters" in page


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({}, "left as it is"),
        ({"kept": 0, "again": []}, "0 steps kept; begins again"),
        ({"kept": 1, "again": []}, "1 step kept; goes on from there"),
        ({"kept": 3, "again": [{"name": n} for n in "abcd"]}, "3 steps kept; a, b, c and 1 more run again"),
    ],
)
def test_a_plan_is_said_in_words(plan, words):
    assert plan_in_words(plan) == words

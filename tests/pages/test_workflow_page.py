"""The page of one workflow: what it says, shows and lets one do."""

import json
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from recovery.models import AuditEntry
from workflows.models import Event, Step

HTMX = {"HX-Request": "true"}
TABS = ["timeline", "events", "recovery", "data", "paths", "audit"]


@pytest.fixture
def seer(db):
    """An operator who may see payloads."""
    user = User.objects.create_user("paula")
    names = ["view_workflow", "act_on_workflow", "see_payload"]
    user.user_permissions.add(*Permission.objects.filter(codename__in=names, content_type__app_label="rekindle"))
    client = Client()
    client.force_login(user)
    return client


def test_the_page_says_why_and_shows_what_happened(viewer, crashed):
    page = viewer.get(f"/workflows/{crashed.pk}/").content.decode()

    assert "Running again." in page
    assert "took over" in page
    assert "host-1:7 died" in page
    assert "recovered by host-2:812" in page
    assert "1 step kept" in page
    assert 'class="bar crashed"' in page
    assert 'class="bar kept"' in page
    assert f"{crashed.pk}.1" in page  # the idempotency key of the step that runs


@pytest.mark.parametrize("tab", TABS)
def test_each_tab_is_a_page_and_a_poll_that_asks_little(viewer, crashed, tab, django_assert_max_num_queries):
    with django_assert_max_num_queries(12):
        page = viewer.get(f"/workflows/{crashed.pk}/", {"tab": tab})
    with django_assert_max_num_queries(6):
        poll = viewer.get(f"/workflows/{crashed.pk}/", {"tab": tab}, headers=HTMX)

    assert page.status_code == poll.status_code == 200
    assert "<html" not in poll.content.decode()
    assert 'style="' not in page.content.decode()


def test_a_poll_without_news_is_a_304(viewer, workflow):
    one = workflow("completed")
    first = viewer.get(f"/workflows/{one.pk}/", headers=HTMX)

    again = viewer.get(f"/workflows/{one.pk}/", headers=HTMX | {"If-None-Match": first["ETag"]})

    assert again.status_code == 304


def test_secrets_are_hidden_unless_the_role_may_see_them(viewer, seer, crashed):
    """Security: payloads are redacted by key."""
    for tab, secret in (("data", "hush"), ("timeline&step=.:0", '"password": "p"')):
        hidden = viewer.get(f"/workflows/{crashed.pk}/?tab={tab}").content.decode().replace("&quot;", '"')
        whole = seer.get(f"/workflows/{crashed.pk}/?tab={tab}").content.decode().replace("&quot;", '"')
        assert secret not in hidden
        assert "redacted" in hidden
        assert secret in whole


def test_a_payload_can_be_downloaded_redacted(viewer, seer, crashed):
    address = f"/workflows/{crashed.pk}/payload/variables.json"

    hidden, whole = viewer.get(address), seer.get(address)

    assert json.loads(hidden.content) == {"total": 12, "api_token": "•••• redacted"}
    assert json.loads(whole.content) == {"total": 12, "api_token": "hush"}
    assert "attachment" in whole["Content-Disposition"]
    assert viewer.get(f"/workflows/{crashed.pk}/payload/fence.json").status_code == 404


def test_the_chosen_step_is_in_the_address(viewer, crashed):
    page = viewer.get(f"/workflows/{crashed.pk}/?step=.%3A0").content.decode()

    assert 'aria-label="Step load"' in page
    assert "Ann" in page


def test_buttons_fit_the_state_and_a_disabled_one_says_why(operator, viewer, crashed, workflow):
    running = operator.get(f"/workflows/{crashed.pk}/").content.decode()
    failed = operator.get(f"/workflows/{workflow('failed').pk}/").content.decode()
    looking = viewer.get(f"/workflows/{crashed.pk}/").content.decode()

    assert "is alive and keeps what it holds" in running
    assert "/ask/cancel?" in running
    assert "Revive…" in failed
    assert "/ask/pause" not in failed
    assert "/ask/" not in looking
    assert "rekindle.act_on_workflow" in looking


def test_what_is_gone_says_whether_retention_took_it(viewer):
    never, gone = uuid4(), uuid4()
    AuditEntry.objects.create(
        actor="otto", via="page", act="fail", subject="workflow", subject_id=str(gone), subject_name="order"
    )

    assert "retention may have removed it" in viewer.get(f"/workflows/{never}/").content.decode()
    answer = viewer.get(f"/workflows/{gone}/")
    assert answer.status_code == 404
    assert "retention has removed it" in answer.content.decode()


def test_hostile_text_stays_text(viewer, workflow):
    evil = "<script>alert(1)</script>"
    one = workflow("failed", name=evil, key=evil, error={"type": evil, "message": evil}, input={evil: evil})
    Step.objects.create(
        workflow=one,
        position=0,
        name=evil,
        status="failed",
        error={"type": evil, "message": evil, "traceback": evil},
        began_at=timezone.now(),
        ended_at=timezone.now(),
    )
    Event.objects.create(workflow=one, seq=1, type="step.failed", path=".", step=evil, attempt=1, data={evil: evil})

    for tab in TABS:
        assert evil not in viewer.get(f"/workflows/{one.pk}/?tab={tab}").content.decode()


def test_generations_lead_to_one_another(viewer, workflow):
    old = workflow("failed", key="K")
    new = workflow("queued", key="K", generation=2, previous=old.pk)
    Event.objects.create(workflow=old, seq=1, type="workflow.reopened", data={"next": str(new.pk)})

    assert f"/workflows/{new.pk}/" in viewer.get(f"/workflows/{old.pk}/").content.decode()
    assert f"/workflows/{old.pk}/" in viewer.get(f"/workflows/{new.pk}/").content.decode()


def test_an_unknown_tab_or_event_is_not_found(viewer, workflow):
    one = workflow()

    assert viewer.get(f"/workflows/{one.pk}/?tab=nonsense").status_code == 404
    assert viewer.get(f"/workflows/{one.pk}/?tab=events&before=x").status_code == 404
    assert viewer.get(f"/workflows/{one.pk}/?step=x:99999999999999").status_code == 200

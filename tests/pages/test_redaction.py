"""Secrets are for those who may see payloads: on every page, part, file and sheet, in the dialog and in the admin."""

from io import StringIO

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from workflows.models import Workflow

from . import hostile
from .hostile import SECRET
from .walking import HTMX, models, walk

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("demo")]


def somebody(*codenames, staff=False):
    """With these permissions of the engine's, and those to look at everything in the admin."""
    user = User.objects.create_user(f"somebody {len(codenames)}", is_staff=staff)
    ours = Permission.objects.filter(content_type__app_label__in=["rekindle", "rekindle_recovery"])
    user.user_permissions.add(*ours.filter(codename__startswith="view_"), *ours.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client


def body(answer):
    return (b"".join(answer.streaming_content) if answer.streaming else answer.content).decode()


def places(client):
    """Where the secret is shown to this client."""
    found = set()
    for url, page in walk(client):
        for answer in (page, client.get(url, headers=HTMX)):
            if SECRET in body(answer):
                found.add(url)
    return found


@pytest.mark.parametrize("permissions", [(), ("act_on_workflow", "configure")])
def test_no_address_shows_a_secret_to_those_who_may_not_see_payloads(permissions):
    hostile.build()

    assert places(somebody(*permissions)) == set()


def test_those_who_may_see_payloads_see_it_wherever_payloads_are():
    """Else the test above proves nothing."""
    hostile.build()

    found = " ".join(places(somebody("see_payload", "act_on_workflow")))

    for place in (
        "tab=data",
        "tab=events",
        "tab=audit",
        "step=",
        "payload/input.json",
        "audit.csv",
        "/audit/",
        "/ask/",
    ):
        assert place in found, place


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_the_dialog_shows_no_secret_even_in_what_would_change(headers):
    hostile.build()
    workflow = Workflow.objects.filter(status="failed").first()
    client = somebody("act_on_workflow")
    typed = {"look": "yes", "v:password": "another", "new-name": "x", "new-value": "1"}

    page = body(client.post(reverse("rekindle:ask", args=[workflow.pk, "recover"]), typed, headers=headers))

    assert "redacted" in page
    assert SECRET not in page
    assert "<ins>&quot;another" not in page


def test_what_is_hidden_cannot_be_overwritten_blindly():
    """A value with a secret inside is not replaced by what the page shows of it."""
    hostile.build()
    workflow = Workflow.objects.filter(status="failed").first()
    url = reverse("rekindle:ask", args=[workflow.pk, "recover"])
    typed = {f"seen-{workflow.pk}": workflow.fence, "reason": "x", "v:deep": '[{"api_token": "mine", "n": 1}]'}

    answer = somebody("act_on_workflow").post(url, typed)

    assert answer.status_code == 409
    assert "rekindle.see_payload" in body(answer)
    assert Workflow.objects.get(pk=workflow.pk).variables == workflow.variables


@pytest.mark.parametrize("words", [("show",), ("show", "--case"), ("show", "--json"), ("show", "--case", "--json")])
def test_the_command_line_hides_nothing_from_whoever_has_the_database(words):
    """There is no role to ask for at a shell, and a document that hides a value cannot be compared with what was stored."""
    hostile.build()
    workflow = Workflow.objects.filter(status="failed").first()
    out = StringIO()

    call_command("rekindle", words[0], str(workflow.pk), *words[1:], stdout=out)

    assert SECRET in out.getvalue()


def test_the_admin_shows_payloads_only_to_those_who_may_see_them():
    hostile.build()
    clients = {False: somebody(staff=True), True: somebody("see_payload", staff=True)}
    shown = {True: 0, False: 0}

    for model in models():
        place = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        for may, client in clients.items():
            urls = [reverse(f"{place}_changelist")]
            urls += [reverse(f"{place}_change", args=[one.pk]) for one in model._default_manager.order_by("pk")[:2]]
            for url in urls:
                answer = client.get(url)
                assert answer.status_code == 200, url
                shown[may] += SECRET in body(answer)

    assert shown[False] == 0
    assert shown[True] >= 5

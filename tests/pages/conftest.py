"""People with and without permissions, and workflows in every state worth looking at."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from recovery import killing
from recovery.models import Recovery
from tests.recovery.world import take_lock
from workflows.models import Event, Status, Step, Worker, Workflow

SEE, ACT = "view_workflow", "act_on_workflow"


def _client(name: str, *codenames: str) -> Client:
    user = User.objects.create_user(name)
    user.user_permissions.add(*Permission.objects.filter(codename__in=codenames, content_type__app_label="rekindle"))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page that kills a worker is there; nobody here may be killed."""
    monkeypatch.setattr(killing, "may_kill", [lambda pid: False])


@pytest.fixture
def viewer(db: None) -> Client:
    return _client("vera", SEE)


@pytest.fixture
def operator(db: None) -> Client:
    return _client("otto", SEE, ACT)


@pytest.fixture
def nobody(db: None) -> Client:
    return _client("nora")


@pytest.fixture
def workflow(db: None) -> Callable[..., Workflow]:
    def make(status: str = Status.QUEUED, **fields: Any) -> Workflow:
        now = timezone.now()
        if status in (Status.COMPLETED, Status.FAILED, Status.CANCELLED):
            fields = {"finished_at": now} | fields
        elif not fields.get("worker"):
            fields = {"wake_at": now} | fields
        return Workflow.objects.create(**{"name": "order", "status": status} | fields)

    return make


@pytest.fixture
def worker(db: None) -> Worker:
    return Worker.objects.create(host="host-2", pid=812)


@pytest.fixture
def crashed(workflow: Callable[..., Workflow], worker: Worker) -> Workflow:
    """Two steps done, a worker lost in the third, taken over by another."""
    now = timezone.now()
    take_lock(worker)
    one = workflow(
        "running",
        key="ORD-1",
        worker=worker,
        running_at=now - timedelta(seconds=2),
        due_at=now - timedelta(seconds=8),
        recoveries=1,
        recovery_attempts=1,
        fence=3,
        input={"order": "ORD-1", "card": "4111"},
        variables={"total": 12, "api_token": "hush"},
    )
    Step.objects.create(
        workflow=one,
        position=0,
        name="load",
        status="done",
        result={"password": "p", "name": "Ann"},
        began_at=now - timedelta(seconds=7),
        ended_at=now - timedelta(seconds=6),
        fence=1,
    )
    Step.objects.create(
        workflow=one, position=1, name="charge", status="open", attempt=2, began_at=now - timedelta(seconds=2), fence=3
    )
    lines = [
        ("workflow.queued", {}, 8, {}),
        ("workflow.started", {}, 7.2, {}),
        ("step.completed", {"path": ".", "step": "load", "attempt": 1, "seconds": 1.0}, 6, {}),
        ("step.started", {"path": ".", "step": "charge", "attempt": 1}, 5.9, {}),
        ("workflow.orphaned", {}, 3, {"worker": "host-1:7", "finding": "dead_worker"}),
        ("workflow.recovered", {"attempt": 1}, 2, {}),
        ("step.started", {"path": ".", "step": "charge", "attempt": 2}, 1.9, {}),
    ]
    for seq, (type, more, ago, data) in enumerate(lines, 1):
        Event.objects.create(
            workflow=one,
            seq=seq,
            type=type,
            at=now - timedelta(seconds=ago),
            worker=worker.pk,
            data=data or None,
            **more,
        )
    Workflow.objects.filter(pk=one.pk).update(seq=len(lines))
    Recovery.objects.create(
        workflow_id=one.pk,
        workflow_name="order",
        fence=1,
        seq=5,
        finding="dead_worker",
        reason="infrastructure_restart",
        detected_by="worker",
        worker_name="host-1:7",
        step="charge",
        in_step=True,
        attempt=1,
        max_attempts=3,
        plan={"kept": 1},
        last_seen_at=now - timedelta(seconds=3.4),
        detected_at=now - timedelta(seconds=3),
    )
    return one

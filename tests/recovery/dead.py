"""Workers and what they hold, without processes: rows are aged, not the clock."""

import os
from datetime import timedelta
from typing import Any

from django.db.models.functions import Now

from workflows import start
from workflows.claiming import Claimer
from workflows.definitions import discover
from workflows.inline import InlineConnection, InlineJournal
from workflows.models import Step, Worker, Workflow


def worker(**given: Any) -> Worker:
    return Worker.objects.create(**{"host": "host-1", "pid": os.getpid(), "ended_why": ""} | given)


def hold(name: str = "three", /, by: Worker | None = None, **given: Any) -> Workflow:
    """A workflow that this worker has claimed; fields of its row may be given."""
    workflow = start(name)
    assert workflow.pk in [held.id for held in _hands(by or worker(), name).claim(1000)]
    if given:
        Workflow.objects.filter(pk=workflow.pk).update(**given)
    workflow.refresh_from_db()
    return workflow


def claim_again(workflow: Workflow, by: Worker | None = None) -> Workflow:
    """Due at once, and claimed by another worker."""
    make_due(workflow)
    _hands(by or worker(), workflow.name).claim(1000)
    workflow.refresh_from_db()
    return workflow


def get_on(workflow: Workflow, name: str = "s0") -> None:
    """What the journal does with a step that is recorded as done."""
    Step.objects.create(workflow=workflow, position=0, name=name, status="done", fence=workflow.fence, ended_at=Now())
    Workflow.objects.filter(pk=workflow.pk).update(recovery_attempts=0)


def make_due(workflow: Workflow) -> None:
    Workflow.objects.filter(pk=workflow.pk).update(wake_at=Now() - timedelta(hours=1))


def claimer(*, alone: bool | None = None) -> Claimer:
    """The hands of a live worker that knows every definition."""
    one = worker(knows={name: [known.version, known.fingerprint] for name, known in discover().items()})
    return Claimer(InlineConnection(), one.pk, InlineJournal(one.pk), discover(), alone)


def silence(one: Worker, seconds: float = 31) -> None:
    """It has not beaten for so long."""
    Worker.objects.filter(pk=one.pk).update(heartbeat_at=Now() - timedelta(seconds=seconds))


def die(one: Worker) -> None:
    Worker.objects.filter(pk=one.pk).update(ended_at=Now(), ended_why="died", last_seen_at=Now())


def _hands(of: Worker, name: str) -> Claimer:
    return Claimer(InlineConnection(), of.pk, InlineJournal(of.pk), {name: discover()[name]})

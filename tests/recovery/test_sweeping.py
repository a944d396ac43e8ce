"""What a sweep would do is found out by the sweep itself, and leaves no trace."""

import logging

import pytest
from django.core import serializers
from django.db import connection

from recovery import sweeping
from recovery.models import Duty, Recovery
from tests.factories import PolicyFactory, WorkerFactory, WorkflowFactory
from workflows import signals
from workflows.models import Event, Step, Worker, Workflow

from .dead import hold

pytestmark = pytest.mark.django_db


def everything():
    tables = (Worker, Workflow, Step, Event, Recovery, Duty)
    return [serializers.serialize("json", model.objects.order_by("pk")) for model in tables]


def test_a_dead_worker_and_what_it_held_are_told_and_nothing_is_written():
    workflow = hold()
    before = everything()

    death, rescue = sweeping.foresee()

    assert death == f"Worker {workflow.worker} would be declared dead: its lock is free."
    assert rescue.startswith(f"{workflow.name} {workflow.key or workflow.pk} would run again, recovery 1 of 3: ")
    assert everything() == before


def test_what_is_foreseen_is_what_is_done():
    hold()
    foreseen = sweeping.foresee()

    duty = sweeping.run_now(by="otto")

    assert len([said for said in foreseen if "would run again" in said]) == duty.recovered == 1


def test_who_would_be_given_up_is_named_and_nobody_is_told(caplog):
    dead = WorkerFactory(dead=True)
    WorkflowFactory(running=True, worker=dead, name="export", key="E-1", recovery_attempts=3, max_recovery_attempts=3)
    heard = []
    listen = lambda **told: heard.append(told)  # noqa: E731
    signals.workflow_finished.connect(listen)

    with caplog.at_level(logging.DEBUG, "rekindle"):
        said = sweeping.foresee()
    signals.workflow_finished.disconnect(listen)

    assert said == ["export E-1 would be given up: it was recovered 3 times without progress."]
    assert (heard, caplog.messages) == ([], [])


def test_what_mode_or_policy_leaves_is_told_too():
    PolicyFactory(name="order", mode="observe")
    dead = WorkerFactory(dead=True)
    for _ in range(2):
        WorkflowFactory(running=True, worker=dead, name="order")

    assert sweeping.foresee() == ["2 workflows stay where they are: mode or policy says so."]


def test_a_long_list_is_cut():
    dead = WorkerFactory(dead=True)
    for _ in range(23):
        WorkflowFactory(running=True, worker=dead)

    said = sweeping.foresee()

    assert len(said) == 21
    assert said[-1] == "The same for 3 more."


def test_when_all_is_well_it_says_so():
    assert sweeping.foresee() == ["Nothing: every worker lives, and nothing is held by a dead one."]
    assert not connection.needs_rollback

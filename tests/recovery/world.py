"""Rows as a crash leaves them. Age the row, not the clock."""

from datetime import timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from workflows.models import Event, Step, Worker, Workflow


def ago(seconds: float) -> Any:
    return timezone.now() - timedelta(seconds=seconds)


def live_worker() -> Worker:
    """One that holds its lock, as long as this test's transaction."""
    worker = Worker.objects.create(host="host-1", pid=4711, ended_why="")
    take_lock(worker)
    return worker


def dead_worker(seconds: float = 60) -> Worker:
    """One that somebody has declared dead."""
    return Worker.objects.create(
        host="host-2",
        pid=812,
        heartbeat_at=ago(seconds),
        last_seen_at=ago(seconds),
        ended_at=ago(seconds / 2),
        ended_why="died",
    )


def silent_worker(seconds: float = 60) -> Worker:
    """One that has not been heard of for that long, and nobody has noticed."""
    return Worker.objects.create(host="host-2", pid=812, heartbeat_at=ago(seconds), ended_why="")


def take_lock(worker: Worker) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock('rekindle_worker'::regclass::oid::int, %s)", [worker.pk])


def running(worker: Worker | None, *steps: Step, **fields: Any) -> Workflow:
    """Begun a minute ago and still running, as far as its row says."""
    fields = {"name": "three", "running_at": ago(60), "wake_at": None if worker else ago(1)} | fields
    return put(Workflow(status="running", worker=worker, **fields), *steps)


def put(workflow: Workflow, *steps: Step) -> Workflow:
    workflow.save(force_insert=True)
    Event.objects.create(workflow=workflow, seq=1, type="workflow.queued")
    for step in steps:
        step.workflow = workflow
        step.save()
    return workflow


def done(name: str, position: int = 0, path: str = ".", **fields: Any) -> Step:
    fields = {"result": name, "began_at": ago(50 - position), "ended_at": ago(49 - position)} | fields
    return Step(path=path, position=position, name=name, status="done", response="ok_proceed", **fields)


def opened(name: str, position: int = 0, path: str = ".", **fields: Any) -> Step:
    """Begun, end unknown."""
    fields = {"status": "open", "began_at": ago(40)} | fields
    return Step(path=path, position=position, name=name, **fields)


def parallel(name: str, branches: list[str], position: int = 0, path: str = ".", **fields: Any) -> Step:
    fields = {"status": "open", "result": {"branches": branches}} | fields
    return Step(path=path, position=position, name=name, kind="parallel", **fields)


def pended(basket: str, position: int = 0, path: str = ".", **fields: Any) -> Step:
    fields = {"kind": "pend", "name": basket} | fields
    return Step(path=path, position=position, status="waiting", basket=basket, **fields)

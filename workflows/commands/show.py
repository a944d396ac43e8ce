"""`list` and `show`: what there is, and everything about one."""

from argparse import ArgumentParser
from typing import Any

from django.db import connections
from django.db.models import Model, Q
from django.db.models.functions import Now

from ..claiming import why_not_claimed
from ..conf import settings
from ..errors import NotFound
from ..models import Event, Signal, Status, Step, Worker, Workflow
from ..values import text
from .answer import Answer, Options, Verb
from .asking import find_id, number
from .table import moment, pairs, short_json, table

EVENTS = 50  # the newest lines of the diary, for people; JSON has them all


def list_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--status", choices=Status.values)
    parser.add_argument("--name", help="only workflows of this name")
    parser.add_argument("--limit", type=number(1, 1000), default=20, help="how many, newest first (20; at most 1000)")


def list_workflows(options: Options, wanted: Q | None = None) -> Answer:
    rows = Workflow.objects.using(settings().database).select_related("worker").order_by("-pk")
    if wanted:
        rows = rows.filter(wanted)
    if options["status"]:
        rows = rows.filter(status=options["status"])
    if options["name"]:
        rows = rows.filter(name=text(options["name"], "The name", 100))
    found = list(rows[: options["limit"]])
    lines = [
        (one.pk, one.name, one.key, _state(one), moment(one.created_at), moment(one.wake_at), one.worker)
        for one in found
    ]
    headings = ("id", "name", "key", "status", "created", "wakes", "worker")
    return Answer([row(one) for one in found], table(headings, lines) if lines else "No workflows.")


def show_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", help="in full, or at least 8 characters of its beginning or end")


def show(options: Options) -> Answer:
    pk, database = find_id(options["id"]), settings().database
    workflow = Workflow.objects.using(database).select_related("worker").filter(pk=pk).first()
    if workflow is None:
        raise NotFound(f"There is no workflow {pk}; retention may have removed it.")
    steps = list(Step.objects.using(database).filter(workflow=pk).order_by("path", "position"))
    events = list(Event.objects.using(database).filter(workflow=pk).order_by("seq"))
    inbox = list(Signal.objects.using(database).filter(workflow=pk).order_by("pk"))
    why = why_not(workflow)
    value = row(workflow) | {
        "worker": row(workflow.worker) if workflow.worker else None,
        "why_not_claimed": why,
        "steps": [row(step) for step in steps],
        "events": [row(event) for event in events],
        "inbox": [row(signal) for signal in inbox],
    }
    parts = [_head(workflow, why), _steps(steps), _events(events), _inbox(inbox)]
    return Answer(value, "\n\n".join(part for part in parts if part))


def row(record: Model) -> dict[str, Any]:
    return {field.attname: field.value_from_object(record) for field in record._meta.concrete_fields}


def why_not(workflow: Workflow) -> str | None:
    """Why nobody takes it now; None if somebody has it, or the next free worker will."""
    if workflow.is_finished:
        return f"It has ended ({workflow.status})."
    if workflow.worker:
        return _holder_is_gone(workflow.worker)
    if workflow.wake_at is None:
        return f"It waits for a person in {workflow.basket}." if workflow.basket else "It waits until it is resumed."
    engine = connections[settings().database]
    if not Workflow.objects.using(engine.alias).filter(pk=workflow.pk, wake_at__lte=Now()).exists():
        return f"It is not due before {moment(workflow.wake_at)}."
    engine.ensure_connection()
    obstacle = why_not_claimed(engine.connection, workflow.pk)
    return f"It is due, but {obstacle}." if obstacle else None


def _holder_is_gone(worker: Worker) -> str | None:
    return None if worker.ended_at is None else f"Its worker {worker} has ended; a sweep will release it."


def _state(workflow: Workflow) -> str:
    asked = f", {workflow.asked['what']} asked" if workflow.asked else ""
    return workflow.status + (f" ({workflow.pause_reason})" if workflow.pause_reason else "") + asked


def _head(workflow: Workflow, why: str | None) -> str:
    return pairs(
        [
            ("id", workflow.pk),
            ("name", f"{workflow.name} (version {workflow.version})"),
            ("key", workflow.key),
            ("status", _state(workflow)),
            ("not claimed", why),
            ("worker", workflow.worker),
            ("basket", workflow.basket),
            ("created", moment(workflow.created_at)),
            ("due", moment(workflow.due_at)),
            ("wakes", moment(workflow.wake_at)),
            ("finished", moment(workflow.finished_at)),
            ("recoveries", f"{workflow.recoveries} ({workflow.recovery_attempts} in a row)"),
            ("fence", workflow.fence),
            ("input", short_json(workflow.input)),
            ("variables", short_json(workflow.variables or None)),
            ("progress", short_json(workflow.progress)),
            ("output", short_json(workflow.output)),
            ("error", short_json(workflow.error)),
        ]
    )


def _steps(steps: list[Step]) -> str:
    headings = ("path", "step", "kind", "status", "attempt", "failures", "began", "ended", "result")
    lines = [
        (
            step.path,
            step.name,
            step.kind,
            step.status + (f" in {step.basket}" if step.basket else ""),
            step.attempt,
            step.failures,
            moment(step.began_at),
            moment(step.ended_at),
            short_json(step.result if step.error is None else step.error),
        )
        for step in steps
    ]
    return table(headings, lines) if lines else ""


def _events(events: list[Event]) -> str:
    shown = events[-EVENTS:]
    lines = [
        (one.seq, moment(one.at), one.type, one.fence, one.worker, one.step, one.attempt, short_json(one.data))
        for one in shown
    ]
    drawn = table(("event", "at", "type", "fence", "worker", "step", "attempt", "data"), lines)
    left = len(events) - len(shown)
    return drawn + (f"\n({left} earlier ones are in --json.)" if left else "")


def _inbox(inbox: list[Signal]) -> str:
    lines = [(one.name, one.uid, moment(one.sent_at), one.by, one.consumed_by, short_json(one.data)) for one in inbox]
    return table(("signal", "uid", "sent", "by", "taken by", "data"), lines) if lines else ""


LIST = Verb("list workflows, newest first", list_arguments, list_workflows)
SHOW = Verb("show a workflow: its row, steps, diary, inbox, and why nobody takes it", show_arguments, show)

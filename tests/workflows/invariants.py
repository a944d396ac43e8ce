"""What must hold of a workflow whatever happened to it, read from outside by SQL: I1, I2, I3, I5, I6."""

from collections import Counter
from uuid import UUID

from workflows.models import Event, Policy, Signal, Step, Workflow

ENDS = {"workflow.completed": "completed", "workflow.failed": "failed", "workflow.cancelled": "cancelled"}
AFTER_AN_END = {"workflow.zombie_refused", "workflow.discarded"}
BECOMES = ENDS | {
    "workflow.queued": "queued",
    "workflow.started": "running",
    "workflow.resumed": "running",
    "workflow.recovered": "running",
    "workflow.orphaned": "running",
    "workflow.released": "running",
    "workflow.paused": "paused",
    "workflow.blocked": "paused",
    "workflow.suspended": "paused",
    "workflow.handed_back": "queued",
    "workflow.revived": "queued",
}
ENDED_BY = {
    ("step", "done"): {"step.completed"},
    ("step", "failed"): {"step.failed"},
    ("sleep", "done"): {"sleep.completed"},
    ("pend", "done"): {"pend.resumed"},
    ("pend", "failed"): {"pend.timed_out"},
    ("signal", "done"): {"signal.received"},
    ("value", "done"): {"value.recorded", "variables.set"},
    ("parallel", "done"): {"parallel.joined"},
}


def check(workflow_id: UUID) -> Workflow:
    """Raise an AssertionError that shows the diary if anything is amiss."""
    workflow = Workflow.objects.get(pk=workflow_id)
    events = list(Event.objects.filter(workflow=workflow).order_by("seq"))
    steps = list(Step.objects.filter(workflow=workflow).order_by("path", "position"))
    diary = "\n".join(
        f"{one.seq} f{one.fence} w{one.worker} {one.type} {one.path}{one.step} {one.data}" for one in events
    )
    try:
        _numbered(workflow, events)
        _one_writer(workflow, events)
        _adds_up(workflow, events)
        _steps_agree(steps, events)
        _signals_once(workflow, events)
        _atomic(workflow, steps)
    except AssertionError as error:
        rows = "\n".join(f"{one.path}{one.position} {one.name} {one.kind} {one.status} {one.attempt}" for one in steps)
        raise AssertionError(f"{error}\n{workflow.status} {workflow.pause_reason}\n{diary}\n{rows}") from None
    return workflow


def ended(workflow_id: UUID) -> set[str]:
    """Idempotency keys of the steps whose end is stored."""
    rows = Step.objects.filter(workflow=workflow_id, status__in=["done", "failed"]).values_list("path", "position")
    return {f"{workflow_id}{path}{position}" for path, position in rows}


def _numbered(workflow: Workflow, events: list[Event]) -> None:
    assert [event.seq for event in events] == list(range(1, len(events) + 1)), "I5: the diary has a gap"
    assert workflow.seq == len(events), "I5: the row's seq is not the last event's"


def _one_writer(workflow: Workflow, events: list[Event]) -> None:
    fences = [event.fence for event in events]
    assert fences == sorted(fences), "I3: a fence went down"
    assert fences[-1] <= workflow.fence, "I3: an event is ahead of the row's fence"
    over = False
    for event in events:
        assert not over or event.type in AFTER_AN_END | {"workflow.revived"}, f"I3: {event.type} after the end"
        over = event.type in ENDS or (over and event.type != "workflow.revived")


def _adds_up(workflow: Workflow, events: list[Event]) -> None:
    status, held = "", False
    for event in events:
        if event.type == "workflow.resume_asked":
            status = "queued" if status == "paused" else status
        elif event.type in BECOMES:
            status = BECOMES[event.type]
            held = event.type in ("workflow.started", "workflow.resumed", "workflow.recovered")
    assert workflow.status == status, f"I5: the events add up to {status}"
    assert (workflow.worker_id is not None) == held, f"I5: held is {held} by the events"
    if not workflow.is_finished and not held:
        waits = workflow.wake_at or workflow.basket or workflow.pause_reason == "suspended"
        assert waits, "I1: nobody will wake it"
    if workflow.is_finished:
        assert not workflow.asked, "I6: a request outlived the end"


def _steps_agree(steps: list[Step], events: list[Event]) -> None:
    told = Counter((event.path, event.step, event.type) for event in events)
    answered = Counter((event.data or {}).get("path") for event in events if event.type == "pend.resumed")
    revived = any(event.type == "workflow.revived" for event in events)
    positions = Counter(step.path for step in steps)
    for path, n in positions.items():
        assert [step.position for step in steps if step.path == path] == list(range(n)), f"I6: a gap in {path}"
    rows = Counter((step.path, step.name, step.kind, step.status) for step in steps if step.response != "ok_pend")
    for (path, name, kind, status), n in rows.items():
        if status not in ("done", "failed") or (kind, status) == ("step", "failed"):
            continue
        if (kind, status) == ("pend", "done"):
            assert answered[path] >= n, f"I6: {path}{name} is answered, but nobody did"
            continue
        lines = sum(told[path, name, type] for type in ENDED_BY.get((kind, status), {f"{kind}.{status}"}))
        anew = status == "failed" and lines > n and revived  # it failed, was revived, and failed again
        assert lines == n or anew, f"I6: {n} {kind} {path}{name} {status}, told {lines} times"
    for step in steps:
        if step.kind == "step" and step.status == "failed":
            assert told[step.path, step.name, "step.failed"], f"I6: {step} failed untold"


def _signals_once(workflow: Workflow, events: list[Event]) -> None:
    read = sum(event.type == "signal.received" for event in events)
    assert Signal.objects.filter(workflow=workflow).exclude(consumed_by="").count() == read, "I6: signals and diary"


def _atomic(workflow: Workflow, steps: list[Step]) -> None:
    effects = set(Policy.objects.filter(name__startswith=str(workflow.pk)).values_list("name", flat=True))
    for step in steps:
        key = f"{workflow.pk}{step.path}{step.position}"
        if key in effects:
            assert step.status == "done", f"I6: {step} took effect and is {step.status}"
            effects.discard(key)
    assert not effects, f"I6: effects without a step: {effects}"

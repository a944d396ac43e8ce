"""Rows as the engine would have written them: each satisfies its constraints, and each workflow has the diary it would have.

WorkflowFactory(running=True)                     held by a live worker
WorkflowFactory(orphan=True)                      held by a worker that has ended
WorkflowFactory(pended=True, basket="review")     with the step that waits there
"""

import os
from datetime import timedelta
from typing import Any

import factory
from django.db.models.functions import Now
from django.utils import timezone
from factory.django import DjangoModelFactory

from recovery.models import Alert, AlertRule, AuditEntry, Batch, BatchItem, Duty, Note, Recovery, SavedView
from workflows.ids import uuid7
from workflows.models import Event, Policy, Signal, Step, Worker, Workflow


def ago(**duration: float) -> Any:
    return timezone.now() - timedelta(**duration)


class WorkerFactory(DjangoModelFactory):
    class Meta:
        model = Worker

    class Params:
        ended = factory.Trait(ended_at=factory.LazyFunction(lambda: ago(seconds=1)), ended_why="stopped")
        dead = factory.Trait(ended_at=factory.LazyFunction(lambda: ago(seconds=1)), ended_why="died")
        silent = factory.Trait(heartbeat_at=factory.LazyFunction(lambda: ago(hours=1)))

    host = factory.Sequence(lambda n: f"host-{n}")
    pid = factory.LazyFunction(os.getpid)
    version = "0.1.0"
    slots = 4
    knows = factory.LazyFunction(lambda: {"three": [1, "f"]})


class WorkflowFactory(DjangoModelFactory):
    """Queued and due, unless a trait says otherwise."""

    class Meta:
        model = Workflow
        skip_postgeneration_save = True

    class Params:
        queued = factory.Trait()
        pending = factory.Trait(status="pending", wake_at=factory.LazyFunction(lambda: ago(days=-1)))
        begun = factory.Trait(wake_at=None, fence=1, running_at=factory.LazyFunction(lambda: ago(seconds=5)))
        running = factory.Trait(begun=True, status="running", worker=factory.SubFactory(WorkerFactory))
        orphan = factory.Trait(begun=True, status="running", worker=factory.SubFactory(WorkerFactory, dead=True))
        released = factory.Trait(  # an orphan that is due again
            begun=True, status="running", fence=2, wake_at=factory.LazyFunction(lambda: ago(seconds=1))
        )
        paused = factory.Trait(begun=True, status="paused")
        sleeping = factory.Trait(paused=True, pause_reason="sleep", wake_at=factory.LazyFunction(lambda: ago(hours=-1)))
        retrying = factory.Trait(
            paused=True, pause_reason="retry", wake_at=factory.LazyFunction(lambda: ago(minutes=-1))
        )
        pended = factory.Trait(paused=True, pause_reason="pend", basket="review")
        suspended = factory.Trait(paused=True, pause_reason="suspended")
        blocked = factory.Trait(
            paused=True,
            pause_reason="blocked",
            wake_at=factory.LazyFunction(lambda: ago(minutes=-1)),
            refused_by="0123456789abcdef",
            error=factory.LazyFunction(lambda: {"type": "Blocked", "message": "at .0 step a is recorded"}),
        )
        in_lane = factory.Trait(status="paused", pause_reason="lane", lane="customer-7", wake_at=None)
        over = factory.Trait(begun=True, finished_at=factory.LazyFunction(lambda: ago(seconds=1)))
        completed = factory.Trait(over=True, status="completed", output=factory.LazyFunction(lambda: {"done": True}))
        failed = factory.Trait(
            over=True,
            status="failed",
            error=factory.LazyFunction(lambda: {"type": "ValueError", "message": "no", "traceback": ""}),
        )
        cancelled = factory.Trait(over=True, status="cancelled")

    name = "three"
    key = factory.Sequence(lambda n: f"K-{n}")
    status = "queued"
    wake_at = factory.LazyFunction(lambda: ago(seconds=1))
    input = factory.LazyFunction(dict)
    seq = factory.LazyAttribute(lambda workflow: len(moves(workflow)))

    @factory.post_generation
    def diary(self: Workflow, create: bool, extracted: Any, **_: Any) -> None:
        """One line for each move it must have made; the fence goes up with the claim."""
        if create:
            for seq, word in enumerate(moves(self), 1):
                EventFactory(workflow=self, seq=seq, type=f"workflow.{word}", fence=min(seq - 1, self.fence))

    @factory.post_generation
    def waiting(self: Workflow, create: bool, extracted: Any, **_: Any) -> None:
        """What waits is a step."""
        kind = {"sleep": "sleep", "retry": "step", "pend": "pend"}.get(self.pause_reason)
        if create and kind:
            StepFactory(
                workflow=self,
                name=self.basket or kind,
                kind=kind,
                status="waiting",
                basket=self.basket,
                wake_at=self.wake_at,
                ended_at=None,
            )


def moves(workflow: Any) -> list[str]:
    """The moves that lead to its state."""
    if workflow.status in ("pending", "queued"):
        return [workflow.status]
    middle = [] if workflow.pause_reason == "lane" else ["started"]
    if workflow.status == "running":
        return ["queued", "started"] if workflow.worker else ["queued", "started", "orphaned"]
    last = workflow.pause_reason if workflow.pause_reason in ("suspended", "blocked") else workflow.status
    return ["queued", *middle, last]


class StepFactory(DjangoModelFactory):
    """Done, unless a status says otherwise."""

    class Meta:
        model = Step

    workflow = factory.SubFactory(WorkflowFactory, running=True)
    position = factory.LazyAttribute(lambda step: step.workflow.steps.filter(path=step.path).count())
    path = "."
    name = factory.Sequence(lambda n: f"step {n}")
    status = "done"
    response = factory.LazyAttribute(lambda step: "ok_proceed" if step.status == "done" and step.kind == "step" else "")
    kind = "step"
    fence = factory.LazyAttribute(lambda step: step.workflow.fence)
    began_at = factory.LazyFunction(lambda: ago(seconds=2))
    ended_at = factory.LazyAttribute(lambda step: ago(seconds=1) if step.status in ("done", "failed") else None)


class EventFactory(DjangoModelFactory):
    """The next line of a diary; give a `seq` to write a certain one."""

    class Meta:
        model = Event

    workflow = factory.SubFactory(WorkflowFactory)
    type = "step.completed"
    fence = factory.LazyAttribute(lambda event: event.workflow.fence)

    @factory.lazy_attribute
    def seq(self) -> int:
        self.workflow.seq += 1
        Workflow.objects.filter(pk=self.workflow.pk).update(seq=self.workflow.seq)
        return int(self.workflow.seq)


class SignalFactory(DjangoModelFactory):
    class Meta:
        model = Signal

    class Params:
        taken = factory.Trait(consumed_by=".")

    workflow = factory.SubFactory(WorkflowFactory)
    name = "letter"
    uid = factory.Sequence(lambda n: f"signal-{n}")
    data = factory.LazyFunction(dict)


class PolicyFactory(DjangoModelFactory):
    class Meta:
        model = Policy

    class Params:
        closed = factory.Trait(paused=True, changed_by="ada", reason="the supplier is away")
        limited = factory.Trait(concurrency=2)

    name = factory.Sequence(lambda n: f"workflow-{n}")


class RecoveryFactory(DjangoModelFactory):
    class Meta:
        model = Recovery

    class Params:
        recovered = factory.Trait(
            outcome="recovered",
            resumed_at=factory.LazyFunction(lambda: ago(seconds=1)),
            settled_at=Now(),
            seconds_to_detect=0.6,
            seconds_to_resume=0.8,
        )
        gave_up = factory.Trait(outcome="gave_up", attempt=3, settled_at=Now())

    workflow_id = factory.LazyFunction(uuid7)
    workflow_name = "three"
    fence = 2
    finding = "dead_worker"
    reason = "infrastructure_restart"
    detected_by = "worker"
    attempt = 1
    max_attempts = 3


class DutyFactory(DjangoModelFactory):
    class Meta:
        model = Duty

    class Params:
        under_way = factory.Trait(ended_at=None)
        failed_with = factory.Trait(error="OperationalError: the database is away")

    name = "sweep"
    ran_by = "scheduled task"
    began_at = factory.LazyFunction(lambda: ago(seconds=2))
    ended_at = factory.LazyFunction(lambda: ago(seconds=1))


class AlertRuleFactory(DjangoModelFactory):
    class Meta:
        model = AlertRule

    name = factory.Sequence(lambda n: f"rule {n}")
    metric = "recovery_failed"
    threshold = 0


class AlertFactory(DjangoModelFactory):
    """Open, unless it is resolved; a rule has one open alert."""

    class Meta:
        model = Alert

    class Params:
        acknowledged = factory.Trait(acknowledged_at=Now(), acknowledged_by="ada")
        resolved = factory.Trait(resolved_at=Now())

    rule = factory.SubFactory(AlertRuleFactory)
    rule_name = factory.SelfAttribute("rule.name")
    severity = factory.SelfAttribute("rule.severity")
    threshold = factory.SelfAttribute("rule.threshold")
    value = 2
    peak = 3


class AuditEntryFactory(DjangoModelFactory):
    class Meta:
        model = AuditEntry

    class Params:
        turned_down = factory.Trait(refused="Cannot revive three (running).")

    actor = "ada"
    via = "page"
    act = "cancel"
    subject = "workflow"
    subject_id = factory.LazyFunction(lambda: str(uuid7()))


class BatchFactory(DjangoModelFactory):
    """Waiting for hands; its items are made apart, and `total` says how many there are."""

    class Meta:
        model = Batch

    class Params:
        under_way = factory.Trait(state="running", done=1, started_at=factory.LazyFunction(lambda: ago(seconds=2)))
        stopped = factory.Trait(state="stopped", ended_at=Now(), stopped_by="ada")
        over = factory.Trait(state="done", done=factory.SelfAttribute("total"), ended_at=Now())

    act = "cancel"
    chosen = "Failed"
    reason = "tidy up"
    by = "ada"
    via = "page"
    total = 2
    confirmed = factory.SelfAttribute("total")


class BatchItemFactory(DjangoModelFactory):
    class Meta:
        model = BatchItem

    class Params:
        done = factory.Trait(result="done", sentence="three K-1 is cancelled.", at=Now())
        skipped = factory.Trait(result="skipped", sentence="Cannot cancel three K-1 (completed).", at=Now())

    batch = factory.SubFactory(BatchFactory)
    workflow_id = factory.LazyFunction(uuid7)
    workflow_name = "three"
    fence = 0


class NoteFactory(DjangoModelFactory):
    class Meta:
        model = Note

    author = "ada"
    subject = "workflow"
    subject_id = factory.LazyFunction(lambda: str(uuid7()))
    text = "the bank is down"


class SavedViewFactory(DjangoModelFactory):
    class Meta:
        model = SavedView

    name = factory.Sequence(lambda n: f"View {n}")
    owner = "1"
    owner_name = "ada"
    view = "failed"

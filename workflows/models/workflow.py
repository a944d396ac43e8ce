from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Now

from ..ids import uuid7
from .worker import Worker


class Status(models.TextChoices):
    PENDING = "pending"  # its start time lies ahead
    QUEUED = "queued"
    RUNNING = "running"  # held by a worker, or an orphan that is about to be
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class PauseReason(models.TextChoices):
    SLEEP = "sleep"
    RETRY = "retry"
    PEND = "pend"
    SUSPENDED = "suspended"
    BLOCKED = "blocked"
    LANE = "lane"


class Priority(models.IntegerChoices):
    CRITICAL = 0
    HIGH = 1
    NORMAL = 2
    LOW = 3
    IDLE = 4


FINISHED = (Status.COMPLETED, Status.FAILED, Status.CANCELLED)

finished = Q(status__in=FINISHED, worker=None, wake_at=None, basket="", finished_at__isnull=False)
held = Q(status=Status.RUNNING, worker__isnull=False, wake_at=None, finished_at=None)
due = Q(worker=None, wake_at__isnull=False, finished_at=None) & ~Q(status__in=FINISHED)
waiting = Q(status=Status.PAUSED, worker=None, wake_at=None, finished_at=None) & (
    ~Q(basket="") | Q(pause_reason__in=[PauseReason.SUSPENDED, PauseReason.LANE])
)
# The innocent do not pay: what died twice in a row runs in a process that holds nothing else, so that only a death while
# alone can bring it to its maximum. Written as claiming.ALONE for the planner.
alone = (
    Q(recovery_attempts__gte=2)
    | Q(recovery_attempts=1, status=Status.RUNNING)
    | Q(max_recovery_attempts__lte=1) & (Q(recovery_attempts=1) | Q(status=Status.RUNNING))
)


class Workflow(models.Model):
    """What was asked for. While it is not finished, somebody is always going to wake it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=100)
    version = models.PositiveIntegerField(default=1)
    key = models.CharField(max_length=200, null=True)
    generation = models.PositiveIntegerField(default=1)
    previous = models.UUIDField(null=True)  # the generation before this one

    status = models.CharField(max_length=9, choices=Status, default=Status.QUEUED)
    pause_reason = models.CharField(max_length=9, choices=PauseReason, blank=True)
    asked = models.JSONField(null=True)  # cancel or pause, requested of the holder: {what, by, at, reason}
    priority = models.PositiveSmallIntegerField(choices=Priority, default=Priority.NORMAL)
    lane = models.CharField(max_length=200, blank=True)

    created_at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField(db_default=Now())
    wake_at = models.DateTimeField(null=True)
    basket = models.CharField(max_length=80, blank=True)
    worker = models.ForeignKey(Worker, models.PROTECT, null=True, related_name="held", db_index=False)
    running_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)  # its first claim
    lateness = models.FloatField(null=True)  # seconds from due_at until then
    finished_at = models.DateTimeField(null=True)

    fence = models.PositiveBigIntegerField(default=0)  # goes up whenever the right to write changes hands
    applied = models.PositiveIntegerField(default=0)  # the number of the holder's last write
    seq = models.PositiveIntegerField(default=1)  # the number of the last event
    nudges = models.PositiveIntegerField(default=0)  # acts from outside while held; the holder cannot overlook one

    input = models.JSONField(default=dict)
    variables = models.JSONField(default=dict)
    output = models.JSONField(null=True)
    error = models.JSONField(null=True)
    search = ArrayField(models.CharField(max_length=300), null=True)
    progress = models.JSONField(null=True)  # {done, total, note}

    ticket = models.CharField(max_length=80, blank=True)
    refused_by = models.CharField(max_length=16, blank=True)  # fingerprint of the code that could not continue it
    persistence = models.CharField(max_length=10, default="aggressive")
    recovery_attempts = models.PositiveIntegerField(default=0)  # in a row, without progress
    recoveries = models.PositiveIntegerField(default=0)  # ever
    suspects = models.JSONField(null=True)  # steps that were open when its worker died: ["." + position]
    max_recovery_attempts = models.PositiveIntegerField(default=3)
    stale_after = models.FloatField(null=True)
    run_limit = models.FloatField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(name="alive_means_someone_will_wake_it", condition=finished | held | due | waiting),
            models.UniqueConstraint(
                fields=["name", "key", "generation"], name="rekindle_one_per_key", condition=Q(key__isnull=False)
            ),
        ]
        indexes = [
            # Read by the claim: one probe per name and priority level.
            models.Index(
                fields=["name", "priority", "wake_at"], name="rekindle_due", condition=Q(wake_at__isnull=False)
            ),
            # Read by the sweep: what a worker holds.
            models.Index(fields=["worker"], name="rekindle_held", condition=Q(worker__isnull=False)),
            # Read by the sweep: how many orphans wait already.
            models.Index(
                fields=["name"],
                name="rekindle_orphans",
                condition=Q(status=Status.RUNNING, worker=None, recovery_attempts=0),
            ),
            # Read by whoever looks for work that has to run alone.
            models.Index(fields=["wake_at"], name="rekindle_alone", condition=Q(wake_at__isnull=False) & alone),
            # Read by retention and by what a name did of late.
            models.Index(
                fields=["name", "finished_at"], name="rekindle_finished", condition=Q(finished_at__isnull=False)
            ),
            models.Index(fields=["finished_at"], name="rekindle_dead_letters", condition=Q(status=Status.FAILED)),
            # Read by whoever asks what is, or was, late.
            models.Index(fields=["started_at"], name="rekindle_late", condition=Q(lateness__gte=60)),
            models.Index(fields=["-lateness"], name="rekindle_latest", condition=Q(lateness__gte=60)),
            # Read by whoever asks what is stuck: few rows at any time.
            models.Index(
                fields=["pause_reason", "due_at"],
                name="rekindle_troubled",
                condition=Q(pause_reason__in=[PauseReason.RETRY, PauseReason.BLOCKED, PauseReason.SUSPENDED]),
            ),
            # Read by the basket pages: of nearly all that wait there, this says that they have not ended.
            models.Index(fields=["id"], name="rekindle_in_basket", condition=~Q(basket="")),
            # Read by the search of the list, newest first: a name and its versions, a status that is not everybody's, a key
            # whose name is not told, what died again and again, what kind of error. A step changes none of these.
            models.Index(fields=["name", "id", "version"], name="rekindle_named"),
            models.Index(
                fields=["status", "id", "name"], name="rekindle_status", condition=~Q(status=Status.COMPLETED)
            ),
            models.Index(fields=["key"], name="rekindle_key", condition=Q(key__isnull=False)),
            models.Index(fields=["recovery_attempts"], name="rekindle_attempts", condition=Q(recovery_attempts__gt=0)),
            models.Index(
                KeyTextTransform("type", "error"), "id", name="rekindle_error", condition=Q(error__isnull=False)
            ),
            GinIndex(fields=["search"], name="rekindle_search", condition=Q(search__isnull=False)),
        ]
        permissions = [
            ("act_on_workflow", "Can recover, fail, cancel, pause, resume and revive workflows"),
            ("see_payload", "Can see inputs, results and variables unredacted"),
            ("configure", "Can change policies, rules and modes"),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.key or self.short_id}"

    @property
    def short_id(self) -> str:
        text = str(self.pk)
        return f"{text[:4]}…{text[-4:]}"

    @property
    def successor(self) -> UUID | None:
        """The generation that was made of this one, which has been frozen since."""
        told = self.events.filter(type="workflow.reopened").first()
        return UUID(told.data["next"]) if told and told.data else None

    @property
    def is_finished(self) -> bool:
        return self.status in FINISHED

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now


class State(models.TextChoices):
    WAITING = "waiting"  # nothing of it has been done yet
    RUNNING = "running"
    STOPPED = "stopped"
    DONE = "done"


OPEN = (State.WAITING, State.RUNNING)


class Result(models.TextChoices):
    DONE = "done"
    SKIPPED = "skipped"  # refused, or it was so already
    FAILED = "failed"  # something went wrong that should not


class Batch(models.Model):
    """One act on many workflows. Which ones was settled when it began; what came later is none of its business."""

    act = models.CharField(max_length=10)  # a key of batches.VERBS
    chosen = models.CharField(max_length=500)  # how they were chosen, in words
    query = models.CharField(max_length=3000, blank=True)  # of the list that showed them, if one did
    basket = models.CharField(max_length=80, blank=True)  # the wait it is about, where a workflow may have several
    to = models.CharField(max_length=80, blank=True)  # the basket that `move` moves to
    reason = models.CharField(max_length=500)
    by = models.CharField(max_length=200)
    via = models.CharField(max_length=10)
    token = models.CharField(max_length=40, blank=True)  # of the form that asked: pressed twice, it is one batch
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)

    confirmed = models.PositiveIntegerField()  # how many somebody has seen and agreed to
    total = models.PositiveIntegerField(default=0)  # how many it has: perhaps fewer, never more
    done = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)

    begun_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)  # its first item
    moved_at = models.DateTimeField(null=True)  # its last one so far
    ended_at = models.DateTimeField(null=True)
    stopped_by = models.CharField(max_length=200, blank=True)

    class Meta:
        verbose_name_plural = "batches"
        constraints = [
            models.UniqueConstraint(fields=["token"], name="rekindle_one_batch_a_form", condition=~Q(token="")),
            models.CheckConstraint(
                name="rekindle_batch_adds_up", condition=Q(total__gte=F("done") + F("skipped") + F("failed"))
            ),
            models.CheckConstraint(
                name="rekindle_batch_ends_once", condition=Q(state__in=OPEN) ^ Q(ended_at__isnull=False)
            ),
        ]
        # Looked at by every worker twice a second.
        indexes = [models.Index(fields=["id"], name="rekindle_batch_open", condition=Q(state__in=OPEN))]

    def __str__(self) -> str:
        return f"{self.pk}: {self.act} {self.total:,} workflow{'' if self.total == 1 else 's'}"

    @property
    def is_open(self) -> bool:
        return self.state in OPEN

    @property
    def handled(self) -> int:
        return self.done + self.skipped + self.failed

    @property
    def left(self) -> int:
        return self.total - self.handled


class BatchItem(models.Model):
    """One workflow of a batch, as it was when the batch began, and what came of it."""

    batch = models.ForeignKey(Batch, models.CASCADE, related_name="items", db_index=False)
    workflow_id = models.UUIDField()
    workflow_name = models.CharField(max_length=100)
    workflow_key = models.CharField(max_length=200, blank=True)
    fence = models.PositiveBigIntegerField()  # if it has moved since, the item is skipped
    result = models.CharField(max_length=7, choices=Result, blank=True)  # empty: its turn has not come
    sentence = models.CharField(max_length=500, blank=True)
    at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["batch", "workflow_id"], name="rekindle_once_a_batch")]
        # Read by whoever takes the next slice, and by the page that shows one kind of result.
        indexes = [models.Index(fields=["batch", "result", "workflow_id"], name="rekindle_batch_results")]

    def __str__(self) -> str:
        return f"{self.workflow_name} {self.workflow_key or self.workflow_id}"

    @property
    def called(self) -> str:
        """Short enough for a row."""
        text = str(self.workflow_id)
        return self.workflow_key or f"{text[:4]}…{text[-4:]}"

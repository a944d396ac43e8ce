from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Finding(models.TextChoices):
    """What was wrong (C10)."""

    DEAD_WORKER = "dead_worker"
    SILENT_WORKER = "silent_worker"
    OVERDUE = "overdue"
    OVERRUNNING = "overrunning"
    DEFINITION_MISSING = "definition_missing"
    DEFINITION_CHANGED = "definition_changed"
    CORRUPT_STATE = "corrupt_state"
    BY_HAND = "by_hand"


class Reason(models.TextChoices):
    """Who started it: the words of the seeds (S0-059)."""

    INFRASTRUCTURE_RESTART = "infrastructure_restart"
    STALE_DETECTION = "stale_detection"
    MANUAL = "manual"


class DetectedBy(models.TextChoices):
    WORKER = "worker"
    SCHEDULED_TASK = "scheduled task"
    START_UP = "start-up"
    OPERATOR = "operator"


class Outcome(models.TextChoices):
    PENDING = "pending"
    RECOVERED = "recovered"  # progress, or a good end, after it
    FAILED = "failed"  # it came back, and failed before any progress: by an error of its own, or by hand
    DIED_AGAIN = "died_again"
    GAVE_UP = "gave_up"
    REFUSED = "refused"  # what is stored of it cannot be read
    CANCELLED = "cancelled"  # called off: it was cancelled before any progress
    OBSERVED = "observed"  # the mode said: only look


UNRECOVERED = (Outcome.DIED_AGAIN, Outcome.GAVE_UP, Outcome.REFUSED)


class Recovery(models.Model):
    """One rescue: who died, what it held, what was kept, what runs again, how long it took."""

    workflow_id = models.UUIDField()
    workflow_name = models.CharField(max_length=100)
    workflow_key = models.CharField(max_length=200, blank=True)
    fence = models.PositiveBigIntegerField()  # under which the dead one held it: one record for each such hold
    seq = models.PositiveIntegerField(null=True)  # of the event that tells the take-over
    finding = models.CharField(max_length=20, choices=Finding)
    reason = models.CharField(max_length=22, choices=Reason)
    detected_by = models.CharField(max_length=14, choices=DetectedBy)
    actor = models.CharField(max_length=200, blank=True)
    note = models.CharField(max_length=500, blank=True)

    worker = models.BigIntegerField(null=True)
    worker_name = models.CharField(max_length=220, blank=True)
    step = models.CharField(max_length=200, blank=True)  # the one it died in, or after
    in_step = models.BooleanField(default=False)
    attempt = models.PositiveIntegerField()  # this is the n-th in a row without progress
    max_attempts = models.PositiveIntegerField()
    plan = models.JSONField(default=dict)  # kept, again, uncertain: what planning.plan() said at that moment
    outcome = models.CharField(max_length=10, choices=Outcome, default=Outcome.PENDING)

    last_seen_at = models.DateTimeField(null=True)  # when the worker was last known to live
    detected_at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField(null=True)  # when the workflow may be claimed again
    resumed_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)  # when its outcome was known
    seconds_to_detect = models.FloatField(null=True)  # at most: from the last sign of life
    seconds_to_resume = models.FloatField(null=True)

    class Meta:
        verbose_name_plural = "recoveries"
        constraints = [models.UniqueConstraint(fields=["workflow_id", "fence"], name="rekindle_one_per_hold")]
        indexes = [
            models.Index(fields=["detected_at"], name="rekindle_recovery_at"),
            # Read by whoever asks what was recovered most often.
            models.Index(fields=["attempt", "detected_at"], name="rekindle_recovery_attempt"),
            # What a worker left, and where it went.
            models.Index(fields=["worker", "id"], name="rekindle_recovery_worker", condition=Q(worker__isnull=False)),
            # Read by settle(), and by whoever asks for those that did not end well: few.
            models.Index(
                fields=["outcome", "id"], name="rekindle_recovery_open", condition=~Q(outcome=Outcome.RECOVERED)
            ),
            models.Index(fields=["settled_at"], name="rekindle_recovery_settled"),
        ]

    def __str__(self) -> str:
        return f"{self.workflow_name} {self.workflow_key or self.workflow_id}: {self.finding}"

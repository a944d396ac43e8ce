from django.db import models
from django.db.models import Q
from django.db.models.fields.json import KeyTextTransform

from .workflow import Workflow


class Step(models.Model):
    """One step on one execution path. Once done or failed it never runs again.

    Sleeps, pends, signal waits, recorded values and parallel blocks are steps too. `open` means begun with its end
    unknown, `waiting` that it has a time, a basket or both, `again` that somebody resumed it and its body runs anew.
    """

    class Kind(models.TextChoices):
        STEP = "step"
        SLEEP = "sleep"
        PEND = "pend"
        SIGNAL = "signal"
        PARALLEL = "parallel"
        VALUE = "value"

    class Status(models.TextChoices):
        OPEN = "open"
        WAITING = "waiting"
        AGAIN = "again"
        DONE = "done"
        FAILED = "failed"
        DROPPED = "dropped"

    class Response(models.TextChoices):
        """The words of seed 3."""

        OK_PROCEED = "ok_proceed"
        OK_PEND = "ok_pend"
        OK_PEND_EOR = "ok_pend_eor"
        ERROR_PEND = "error_pend"

    # Written only together with its workflow's row, removed only with it: the reference needs no trigger per row.
    workflow = models.ForeignKey(Workflow, models.DO_NOTHING, related_name="steps", db_constraint=False, db_index=False)
    path = models.CharField(max_length=400, default=".")
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=200)
    occurrence = models.PositiveIntegerField(default=1)
    kind = models.CharField(max_length=8, choices=Kind, default=Kind.STEP)
    status = models.CharField(max_length=8, choices=Status, default=Status.OPEN)
    response = models.CharField(max_length=11, choices=Response, blank=True)
    attempt = models.PositiveIntegerField(default=1)  # how often its body was begun
    failures = models.PositiveIntegerField(default=0)  # how often it raised; a crash is no failure
    on_crash = models.CharField(max_length=6, default="rerun")
    idempotent = models.BooleanField(default=False)  # declared so by its author
    fence = models.PositiveBigIntegerField(default=0)  # under which it was last written
    began_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    wake_at = models.DateTimeField(null=True)
    basket = models.CharField(max_length=80, blank=True)
    result = models.JSONField(null=True)
    error = models.JSONField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workflow", "path", "position"], name="rekindle_one_step")]
        indexes = [
            # Read by the basket pages, which count without looking at rows.
            models.Index(
                fields=["basket", "workflow"],
                include=["began_at"],
                name="rekindle_pended",
                condition=Q(status="waiting") & ~Q(basket=""),
            ),
            # Read by the search of the list: at which step something stands, and what went wrong there. A step that ends
            # well before anybody could see it begin is in neither.
            models.Index(
                fields=["name", "workflow"],
                name="rekindle_standing",
                condition=Q(status__in=["open", "waiting", "again", "failed"]),
            ),
            models.Index(
                KeyTextTransform("type", "error"),
                "workflow",
                name="rekindle_step_error",
                condition=Q(error__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.path}{self.name}"

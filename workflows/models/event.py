from django.db import models
from django.db.models import Func

from .workflow import Workflow


class ClockTimestamp(Func):
    """The moment of the statement, not of the transaction's begin."""

    template = "clock_timestamp()"
    output_field = models.DateTimeField()


class Event(models.Model):
    """A line of a workflow's diary, numbered without gaps, written in the transaction of the change it tells.

    Append-only: a trigger refuses UPDATE, DELETE and TRUNCATE; only retention removes whole finished workflows.
    """

    workflow = models.ForeignKey(
        Workflow, models.DO_NOTHING, related_name="events", db_constraint=False, db_index=False
    )
    seq = models.PositiveIntegerField()
    at = models.DateTimeField(db_default=ClockTimestamp())
    type = models.CharField(max_length=40)
    fence = models.PositiveBigIntegerField(default=0)
    worker = models.BigIntegerField(null=True)  # a number, not a reference: the diary outlives the worker's row
    path = models.CharField(max_length=400, blank=True)
    step = models.CharField(max_length=200, blank=True)
    attempt = models.PositiveIntegerField(null=True)
    seconds = models.FloatField(null=True)
    data = models.JSONField(null=True)

    class Meta:
        ordering = ["workflow", "seq"]
        constraints = [models.UniqueConstraint(fields=["workflow", "seq"], name="rekindle_diary")]

    def __str__(self) -> str:
        return f"{self.seq} {self.type}"

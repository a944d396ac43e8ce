from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from .workflow import Workflow


class Signal(models.Model):
    """A message in a workflow's inbox. It may come before anyone waits for it; the same id counts once."""

    workflow = models.ForeignKey(Workflow, models.DO_NOTHING, related_name="inbox", db_constraint=False, db_index=False)
    name = models.CharField(max_length=80)
    uid = models.CharField(max_length=200)
    data = models.JSONField(null=True)
    by = models.CharField(max_length=200, blank=True)
    sent_at = models.DateTimeField(db_default=Now())
    consumed_by = models.CharField(max_length=400, blank=True)  # the path of the step that took it

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workflow", "uid"], name="rekindle_one_signal")]
        indexes = [models.Index(fields=["workflow", "id"], name="rekindle_inbox", condition=Q(consumed_by=""))]

    def __str__(self) -> str:
        return self.name

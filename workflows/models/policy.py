from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Policy(models.Model):
    """What operators may tune for one workflow name without a deploy. An empty field means: as the settings say.

    The policy called `*` is everybody's: its mode is in force where a name's own policy says nothing.
    """

    name = models.CharField(max_length=100, unique=True)
    paused = models.BooleanField(default=False)  # accept, do not start
    concurrency = models.PositiveIntegerField(null=True, blank=True)
    stale_after = models.FloatField(null=True, blank=True)
    max_recovery_attempts = models.PositiveIntegerField(null=True, blank=True)
    run_limit = models.FloatField(null=True, blank=True)
    on_run_limit = models.CharField(
        max_length=7, default="flag", choices=[(act, act) for act in ("flag", "extend", "recover", "fail")]
    )
    mode = models.CharField(max_length=7, blank=True, choices=[(mode, mode) for mode in ("enforce", "observe", "off")])
    keep_finished = models.FloatField(null=True, blank=True)
    changed_at = models.DateTimeField(db_default=Now())
    changed_by = models.CharField(max_length=200, blank=True)
    reason = models.CharField(max_length=500, blank=True)

    class Meta:
        verbose_name_plural = "policies"
        constraints = [
            models.CheckConstraint(name="rekindle_room_for_one", condition=Q(concurrency=None) | Q(concurrency__gte=1)),
        ]

    def __str__(self) -> str:
        return self.name

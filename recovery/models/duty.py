from django.db import models
from django.db.models.functions import Now


class Duty(models.Model):
    """One run of a scheduled duty: when, how long, what it found and did."""

    name = models.CharField(max_length=40)
    ran_by = models.CharField(max_length=14)  # scheduled task, worker, operator
    began_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)  # empty: it runs, or died
    found = models.PositiveIntegerField(default=0)
    recovered = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    held = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    note = models.JSONField(null=True)  # what else it has to tell
    error = models.CharField(max_length=500, blank=True)

    class Meta:
        verbose_name_plural = "duties"
        indexes = [models.Index(fields=["name", "-began_at"], name="rekindle_duty_last")]

    def __str__(self) -> str:
        return f"{self.name} {self.began_at:%Y-%m-%d %H:%M:%S}"

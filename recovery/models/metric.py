from django.contrib.postgres.fields import ArrayField
from django.db import models

MINUTE, HOUR, DAY = 60, 3600, 86400


class MetricMinute(models.Model):
    """What happened to one name in one minute, or in one hour or day of them (UTC), counted so that any span can be added up.

    The name is empty for all together: every minute has such a row, however quiet, and the newest says how far the
    counting has come. Only those rows carry samples: what was seen when the minute had just ended.
    """

    grain = models.PositiveIntegerField(default=MINUTE)  # seconds it covers
    minute = models.DateTimeField()  # when those began
    name = models.CharField(max_length=100, blank=True)

    started = models.PositiveIntegerField(default=0)  # asked for
    completed = models.PositiveIntegerField(default=0)
    rescued = models.PositiveIntegerField(default=0)  # those of them that had been recovered on the way
    failed = models.PositiveIntegerField(default=0)
    cancelled = models.PositiveIntegerField(default=0)
    late = models.PositiveIntegerField(default=0)  # taken later than the grace
    recovered = models.PositiveIntegerField(default=0)  # recoveries that ended well, when that was known
    unrecovered = models.PositiveIntegerField(default=0)  # died again, given up or refused
    given_up = models.PositiveIntegerField(default=0)
    # Recoveries by what set them off, when that was found.
    infrastructure_restart = models.PositiveIntegerField(default=0)
    stale_detection = models.PositiveIntegerField(default=0)
    manual = models.PositiveIntegerField(default=0)

    # How many fell between which bounds of histogram.py; empty if there were none.
    took = ArrayField(models.PositiveIntegerField(), null=True)  # of those that completed, from due to done
    detect = ArrayField(models.PositiveIntegerField(), null=True)  # from the last sign of life to being found dead
    resume = ArrayField(models.PositiveIntegerField(), null=True)  # from the last sign of life to running again

    running = models.PositiveIntegerField(null=True)
    waiting = models.PositiveIntegerField(null=True)
    due = models.PositiveIntegerField(null=True)
    oldest = models.FloatField(null=True)  # seconds the oldest of those due had waited

    class Meta:
        # In the order in which a span is read, for one name or for all; retention reads it too.
        constraints = [models.UniqueConstraint(fields=["grain", "minute", "name"], name="rekindle_one_per_minute")]

    def __str__(self) -> str:
        return f"{self.name or 'all'} {self.minute:%Y-%m-%d %H:%M}"

from django.db import models
from django.db.models.functions import Now


class Worker(models.Model):
    """A process that runs workflows. Its advisory lock lives exactly as long as it does; its row tells the rest."""

    host = models.CharField(max_length=200)
    pid = models.PositiveIntegerField()
    version = models.CharField(max_length=40, blank=True)
    release = models.CharField(max_length=200, blank=True)
    slots = models.PositiveIntegerField(default=1)
    knows = models.JSONField(default=dict)  # name -> [version, fingerprint] of the code it has
    started_at = models.DateTimeField(db_default=Now())
    heartbeat_at = models.DateTimeField(db_default=Now())
    heartbeat_every = models.FloatField(default=10)
    memory = models.PositiveBigIntegerField(default=0)  # bytes, as of the last heartbeat
    incarnation = models.CharField(max_length=60, blank=True)  # of the server on which it took its lock
    pooled = models.BooleanField(default=False)  # behind a transaction pooler, where a session lock means nothing
    alone = models.BooleanField(default=False)  # it runs one workflow that may have killed others, and nothing else
    last_seen_at = models.DateTimeField(null=True)  # the last sign of life, written when it is ended
    lost = models.PositiveIntegerField(default=0)  # slots whose bodies do not come back, as of the last heartbeat
    ended_at = models.DateTimeField(null=True)
    ended_why = models.CharField(max_length=40, blank=True)  # stopped, died, silent, lost slots

    class Meta:
        indexes = [models.Index(fields=["id"], name="rekindle_worker_alive", condition=models.Q(ended_at=None))]

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"

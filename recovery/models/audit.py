from django.db import models
from django.db.models.functions import Now


class AuditEntry(models.Model):
    """Who did what to which workflow, policy, rule or mode, why, and what it looked like before and after."""

    at = models.DateTimeField(db_default=Now(), db_index=True)
    actor = models.CharField(max_length=200)
    via = models.CharField(max_length=10)  # page, admin, cli, api, batch
    act = models.CharField(max_length=30)
    subject = models.CharField(max_length=20)  # workflow, policy, rule, worker, mode, batch, …
    subject_id = models.CharField(max_length=100, db_index=True)
    subject_name = models.CharField(max_length=320, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    refused = models.CharField(max_length=500, blank=True)  # why it was not done
    token = models.CharField(max_length=40, blank=True)  # of the form that asked: pressed twice, it is done once

    class Meta:
        verbose_name_plural = "audit entries"
        # Who did it, and to what: asked for by their exact words.
        indexes = [
            models.Index(fields=["actor", "id"], name="rekindle_audit_actor"),
            models.Index(fields=["subject_name", "id"], name="rekindle_audit_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.actor}: {self.act} {self.subject} {self.subject_name}"

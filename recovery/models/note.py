from django.db import models
from django.db.models.functions import Now


class Note(models.Model):
    """One line that somebody left on a workflow, or on the death of a worker, for whoever comes next."""

    at = models.DateTimeField(db_default=Now())
    author = models.CharField(max_length=200)
    subject = models.CharField(max_length=20)  # workflow, worker
    subject_id = models.CharField(max_length=100)
    subject_name = models.CharField(max_length=320, blank=True)
    text = models.CharField(max_length=300)

    class Meta:
        indexes = [
            models.Index(fields=["subject_id", "-id"], name="rekindle_note_on"),
            models.Index(fields=["at"], name="rekindle_note_at"),
        ]

    def __str__(self) -> str:
        return f"{self.author}: {self.text}"

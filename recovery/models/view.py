from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower, Now


class SavedView(models.Model):
    """A list that somebody wants to see again: a view, what is searched for and when, under a name.

    Its owner is known by the key of his row, as text: users may live in another database and their keys be anything.
    """

    name = models.CharField(max_length=40)
    owner = models.CharField(max_length=255)
    owner_name = models.CharField(max_length=200)  # what he was called when he saved it
    shared = models.BooleanField(default=False)  # everybody sees it
    view = models.CharField(max_length=20)  # one of queries.workflows.VIEWS
    search = models.CharField(max_length=500, blank=True)
    range = models.CharField(max_length=80, blank=True)  # 24h, or from/to
    saved_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(Lower("name"), "owner", name="rekindle_one_own_view"),
            models.UniqueConstraint(Lower("name"), name="rekindle_one_shared_view", condition=Q(shared=True)),
        ]
        indexes = [models.Index(fields=["owner"], name="rekindle_view_owner")]

    def __str__(self) -> str:
        return self.name

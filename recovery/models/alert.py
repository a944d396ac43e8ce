from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class AlertRule(models.Model):
    """A threshold for one figure of `metrics`. The installed ones have a `builtin` name and come back if deleted."""

    name = models.CharField(max_length=100, unique=True)
    builtin = models.CharField(max_length=40, blank=True)
    metric = models.CharField(max_length=60)  # a key of metrics.ALERTABLE
    scope = models.CharField(max_length=100, blank=True)  # a workflow name; empty: all
    comparison = models.CharField(max_length=2, default=">", choices=[(sign, sign) for sign in (">", ">=", "<", "<=")])
    threshold = models.FloatField()
    window = models.FloatField(default=3600)  # seconds over which the figure is taken
    lasting = models.FloatField(default=0)  # seconds it must hold before the alert opens
    resolve_at = models.FloatField(null=True, blank=True)  # empty: the threshold itself
    severity = models.CharField(
        max_length=8, default="warning", choices=[(s, s) for s in ("info", "warning", "critical")]
    )
    enabled = models.BooleanField(default=True)
    breached_since = models.DateTimeField(null=True, editable=False)
    value = models.FloatField(null=True, editable=False)  # as of the last evaluation
    evaluated_at = models.DateTimeField(null=True, editable=False)
    trouble = models.CharField(max_length=500, blank=True, editable=False)  # why it could not be evaluated
    changed_at = models.DateTimeField(db_default=Now())
    changed_by = models.CharField(max_length=200, blank=True)

    def __str__(self) -> str:
        return self.name


class Alert(models.Model):
    """One incident: opened once, resolved once."""

    rule = models.ForeignKey(AlertRule, models.SET_NULL, null=True, related_name="alerts")
    rule_name = models.CharField(max_length=100)
    severity = models.CharField(max_length=8)
    threshold = models.FloatField()
    value = models.FloatField()
    peak = models.FloatField()
    details = models.JSONField(null=True)  # what is affected
    opened_at = models.DateTimeField(db_default=Now())
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=200, blank=True)
    resolved_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rule"], name="rekindle_one_open_alert", condition=Q(resolved_at=None))
        ]
        indexes = [models.Index(fields=["-opened_at"], name="rekindle_alert_at")]

    def __str__(self) -> str:
        return f"{self.rule_name} since {self.opened_at:%Y-%m-%d %H:%M}"

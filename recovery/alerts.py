"""Comparing figures with thresholds: one alert opens and one resolves for each incident.

A rule is judged in one transaction, under its own row's lock: of several who evaluate at once one does, the others pass
on. It opens when its figure is past the threshold for as long as `lasting` says, and resolves only when the figure is
no longer past `resolve_at`: between the two nothing changes, so it does not flap.
"""

import logging
import operator
import time
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from workflows.conf import settings

from .metrics import Measured, measure
from .models import Alert, AlertRule
from .tally import Tally

log = logging.getLogger("rekindle")

COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


def evaluate(ran_by: str, deadline: float) -> Tally:
    """The duty. Found are the alerts that opened, recovered those that resolved, held those that stay open."""
    tally = Tally()
    _resolve_the_ruleless(tally)
    for pk in AlertRule.objects.using(settings().database).order_by("evaluated_at", "pk").values_list("pk", flat=True):
        if time.monotonic() > deadline:
            tally.skipped += 1
            continue
        try:
            outcome = _judge(pk)
        except Exception as error:
            _admit(pk, error, tally)
        else:
            if outcome:
                setattr(tally, outcome, getattr(tally, outcome) + 1)
    return tally


def is_past(value: float, comparison: str, threshold: float) -> bool:
    return bool(COMPARE[comparison](value, threshold))


def _judge(pk: int) -> str:
    """The word for what became of it in the tally; empty if all is well."""
    with transaction.atomic(using=settings().database):
        rules = AlertRule.objects.using(settings().database).select_for_update(skip_locked=True)
        rule = rules.filter(pk=pk).annotate(now=Now()).first()
        if rule is None:
            return "skipped"  # somebody else is at it, or it was just deleted
        alert = Alert.objects.using(settings().database).filter(rule=rule, resolved_at=None).first()
        if not rule.enabled:
            _remember(rule, breached_since=None)
            return _resolve(alert, alert.value) if alert else ""
        measured = measure(rule.metric, rule.window, rule.scope)
        breached = is_past(measured.value, rule.comparison, rule.threshold)
        since = (rule.breached_since or rule.now) if breached else None
        _remember(rule, breached_since=since, value=measured.value)
        if alert:
            return _follow(alert, rule, measured)
        return _open(rule, measured) if since and _lasted(rule, since) else ""


def _lasted(rule: Any, since: datetime) -> bool:
    return bool(rule.now - since >= timedelta(seconds=rule.lasting))


def _remember(rule: AlertRule, **changes: Any) -> None:
    AlertRule.objects.using(settings().database).filter(pk=rule.pk).update(evaluated_at=Now(), trouble="", **changes)


def _open(rule: AlertRule, measured: Measured) -> str:
    Alert.objects.using(settings().database).create(
        rule=rule,
        rule_name=rule.name,
        severity=rule.severity,
        threshold=rule.threshold,
        value=measured.value,
        peak=measured.value,
        details=measured.details,
    )
    log.warning("%s", rule.name, extra={"value": measured.value, "threshold": rule.threshold, **measured.details})
    return "found"


def _follow(alert: Alert, rule: AlertRule, measured: Measured) -> str:
    """It is open: keep its worst figure, and resolve it once the figure is well away from trouble."""
    limit = rule.threshold if rule.resolve_at is None else rule.resolve_at
    if not is_past(measured.value, rule.comparison, limit):
        return _resolve(alert, measured.value)
    worst = max if rule.comparison in (">", ">=") else min
    alert.value, alert.peak = measured.value, worst(alert.peak, measured.value)
    alert.details = measured.details
    alert.save(update_fields=["value", "peak", "details"])
    return "held"


def _resolve(alert: Alert, value: float) -> str:
    resolved = Alert.objects.using(settings().database).filter(pk=alert.pk, resolved_at=None)
    resolved.update(resolved_at=Now(), value=value)
    log.info("Resolved: %s", alert.rule_name, extra={"value": value})
    return "recovered"


def _resolve_the_ruleless(tally: Tally) -> None:
    """Its rule was deleted: nobody will ever look at it again."""
    orphaned = Alert.objects.using(settings().database).filter(Q(rule=None), resolved_at=None)
    tally.recovered += orphaned.update(resolved_at=Now())


def _admit(pk: int, error: Exception, tally: Tally) -> None:
    sentence = f"{type(error).__name__}: {error}".replace("\0", "")[:500]
    rule = AlertRule.objects.using(settings().database).filter(pk=pk)
    rule.update(trouble=sentence, evaluated_at=Now())
    name = rule.values_list("name", flat=True).first() or str(pk)
    log.error("The rule %s could not be evaluated: %s", name, sentence)
    tally.failed += 1
    tally.note.setdefault("not_evaluated", {})[name] = sentence

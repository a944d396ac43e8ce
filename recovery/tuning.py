"""What admins tune without a deploy: policies and the thresholds of rules. Change and audit entry stand or fall together."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from workflows.conf import settings
from workflows.errors import Refused
from workflows.models import Policy
from workflows.notify import poke

from .auditing import fields_of, note_change
from .models import AlertRule

EVERYBODY = "*"


def stamp(changed_at: datetime | None) -> str:
    """What a form carries, so that nobody overwrites what they have not seen."""
    return changed_at.astimezone(UTC).isoformat() if changed_at else ""


def tune_policy(name: str, changes: Mapping[str, Any], *, by: str, reason: str, seen: str) -> Policy:
    """In force at once: whoever claims or sweeps next reads it."""
    database = settings().database
    with transaction.atomic(using=database):
        policies = Policy.objects.using(database).select_for_update()
        policy, created = policies.get_or_create(name=name)
        if stamp(None if created else policy.changed_at) != seen:
            by_whom = f" by {policy.changed_by}" if policy.changed_by else ""
            raise Refused(f"Nothing was changed: the policy of {name} was changed{by_whom} meanwhile. Look again.")
        before = None if created else fields_of(policy)
        for field, value in changes.items():
            setattr(policy, field, value)
        policy.reason, policy.changed_by, policy.changed_at = reason, by[:200], Now()
        policy.save()
        act = "create" if created else "change"
        note_change(act, "policy", policy, by=by, via="page", before=before, after=fields_of(policy))
        transaction.on_commit(poke, using=database)  # what waited for a free place may start now
    return policy


def tune_rule(pk: int, changes: Mapping[str, Any], *, by: str, reason: str) -> AlertRule:
    """Judged by the new threshold when rules are evaluated next. Raises AlertRule.DoesNotExist."""
    with transaction.atomic(using=settings().database):
        rule = AlertRule.objects.using(settings().database).select_for_update().get(pk=pk)
        before = fields_of(rule)
        for field, value in changes.items():
            setattr(rule, field, value)
        rule.changed_by, rule.changed_at = by[:200], Now()
        rule.save(update_fields=[*changes, "changed_by", "changed_at"])
        note_change("change", "rule", rule, by=by, via="page", before=before, after=fields_of(rule), reason=reason)
    return rule

"""Policies and alert rules may be changed; who changed what is written down with the change."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.db.models.functions import Now
from django.forms import ModelForm
from django.http import HttpRequest

from workflows.models import Policy

from ..auditing import fields_of, note_change
from ..models import AlertRule

if TYPE_CHECKING:
    AnyAdmin = admin.ModelAdmin[Any]
    AnyForm = ModelForm[Any]
else:  # generic only for the type checker
    AnyAdmin, AnyForm = admin.ModelAdmin, ModelForm


class Audited(AnyAdmin):
    """Django's admin wraps a change in one transaction, so change and audit entry stand or fall together."""

    subject = ""
    readonly_fields = ["changed_at", "changed_by"]

    def save_model(self, request: HttpRequest, obj: Any, form: AnyForm, change: bool) -> None:
        before = fields_of(type(obj)._default_manager.get(pk=obj.pk)) if change else None
        obj.changed_at = Now()  # the database's clock, not ours
        obj.changed_by = request.user.get_username()
        super().save_model(request, obj, form, change)
        self._note("change" if change else "create", request, obj, before, fields_of(obj))

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        self._note("delete", request, obj, fields_of(obj), None)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for obj in queryset:
            self.delete_model(request, obj)

    def _note(self, act: str, request: HttpRequest, obj: Model, before: Any, after: Any) -> None:
        note_change(act, self.subject, obj, by=request.user.get_username(), via="admin", before=before, after=after)


@admin.register(Policy)
class PolicyAdmin(Audited):
    subject = "policy"
    list_display = ["name", "paused", "concurrency", "mode", "changed_at", "changed_by", "reason"]


@admin.register(AlertRule)
class AlertRuleAdmin(Audited):
    subject = "rule"
    list_display = ["name", "enabled", "metric", "comparison", "threshold", "severity", "value", "changed_by"]
    list_filter = ["enabled", "severity"]

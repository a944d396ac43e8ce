"""What the engine and the watch write can be looked at and not touched."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from workflows.models import Event, Signal, Step, Worker

from ..models import Alert, AuditEntry, Batch, BatchItem, Duty, MetricMinute, Note, Recovery, SavedView
from .finding import Capped, exactly

if TYPE_CHECKING:
    AnyAdmin = admin.ModelAdmin[Any]
else:  # generic only for the type checker
    AnyAdmin = admin.ModelAdmin


class ReadOnly(AnyAdmin):
    show_full_result_count = False
    paginator = Capped
    list_per_page = 50
    ordering = ["-pk"]
    payload: tuple[str, ...] = ()  # what was given and what came of it: not for everybody's eyes

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        word = search_term.replace("\0", "").strip()
        return exactly(queryset, self.search_fields, word) if word else queryset, False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """What the page offers as a filter. The stock one takes any column, and would look for it row by row among millions."""
        return lookup.partition("__")[0] in self.list_filter

    def get_exclude(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        return () if request.user.has_perm("rekindle.see_payload") else self.payload

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(Step)
class StepAdmin(ReadOnly):
    payload = ("result", "error")
    list_display = [
        "id",
        "workflow_id",
        "path",
        "position",
        "name",
        "kind",
        "status",
        "attempt",
        "began_at",
        "ended_at",
    ]
    search_fields = ["=workflow__id"]


@admin.register(Event)
class EventAdmin(ReadOnly):
    payload = ("data",)
    list_display = ["id", "workflow_id", "seq", "at", "type", "step", "attempt", "worker"]
    search_fields = ["=workflow__id"]


@admin.register(Signal)
class SignalAdmin(ReadOnly):
    payload = ("data",)
    list_display = ["id", "workflow_id", "name", "uid", "by", "sent_at", "consumed_by"]
    search_fields = ["=workflow__id"]


@admin.register(Worker)
class WorkerAdmin(ReadOnly):
    list_display = [
        "id",
        "host",
        "pid",
        "version",
        "release",
        "slots",
        "lost",
        "started_at",
        "heartbeat_at",
        "ended_at",
        "ended_why",
    ]
    list_filter = ["ended_why"]


@admin.register(Recovery)
class RecoveryAdmin(ReadOnly):
    list_display = [
        "id",
        "workflow_name",
        "workflow_key",
        "finding",
        "reason",
        "detected_by",
        "worker_name",
        "step",
        "attempt",
        "max_attempts",
        "outcome",
        "detected_at",
        "actor",
    ]
    list_filter = ["outcome"]
    search_fields = ["=workflow_id"]


@admin.register(Duty)
class DutyAdmin(ReadOnly):
    list_display = [
        "name",
        "ran_by",
        "began_at",
        "ended_at",
        "found",
        "recovered",
        "failed",
        "held",
        "skipped",
        "error",
    ]
    list_filter = ["name", "ran_by"]


@admin.register(MetricMinute)
class MetricMinuteAdmin(ReadOnly):
    list_display = ["minute", "grain", "name", "started", "completed", "failed", "recovered", "given_up", "late"]


@admin.register(Alert)
class AlertAdmin(ReadOnly):
    list_display = ["rule_name", "severity", "value", "threshold", "opened_at", "acknowledged_by", "resolved_at"]
    list_filter = ["severity"]


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly):
    payload = ("before", "after")
    list_display = ["at", "actor", "via", "act", "subject", "subject_name", "reason", "refused"]
    search_fields = ["=actor", "=subject_id", "=subject_name"]


@admin.register(Batch)
class BatchAdmin(ReadOnly):
    list_display = ["id", "act", "chosen", "by", "state", "total", "done", "skipped", "failed", "begun_at", "ended_at"]
    list_filter = ["state", "act"]
    search_fields = ["=id", "=by"]


@admin.register(BatchItem)
class BatchItemAdmin(ReadOnly):
    list_display = ["id", "batch_id", "workflow_id", "workflow_name", "workflow_key", "result", "sentence", "at"]
    list_filter = ["result"]
    search_fields = ["=batch__id", "=workflow_id"]


@admin.register(SavedView)
class SavedViewAdmin(ReadOnly):
    list_display = ["name", "owner_name", "shared", "view", "search", "range", "saved_at"]
    list_filter = ["shared"]


@admin.register(Note)
class NoteAdmin(ReadOnly):
    list_display = ["at", "author", "subject", "subject_name", "text"]
    list_filter = ["subject"]
    search_fields = ["=author", "=subject_id", "=subject_name"]

"""The records of the watch. They carry names and numbers, not references: they outlive the workflows they tell of."""

from .alert import Alert, AlertRule
from .audit import AuditEntry
from .batch import Batch, BatchItem
from .duty import Duty
from .metric import MetricMinute
from .note import Note
from .recovery import Recovery
from .view import SavedView

__all__ = [
    "Alert",
    "AlertRule",
    "AuditEntry",
    "Batch",
    "BatchItem",
    "Duty",
    "MetricMinute",
    "Note",
    "Recovery",
    "SavedView",
]

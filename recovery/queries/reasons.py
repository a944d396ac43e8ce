"""Recoveries over time, by what set them off."""

from datetime import datetime

from ..models.recovery import Reason
from ..ranges import Range
from .figures import span
from .together import together

COUNTED = """SELECT date_bin(%(step)s * interval '1 second', detected_at, %(start)s::timestamptz) AS at, reason, count(*) AS count
FROM rekindle_recovery_recovery WHERE detected_at >= %(start)s AND detected_at < %(end)s GROUP BY 1, 2"""


def by_reason(over: Range) -> list[tuple[datetime, *tuple[int, ...]]]:
    """One row for each bucket, the quiet ones too: its moment, then the count of each reason."""
    asked = span(over)
    given = {"start": asked.start, "end": asked.end, "step": asked.step.total_seconds()}
    rows = together(given, counted=COUNTED)["counted"]
    found = {(datetime.fromisoformat(row["at"]), row["reason"]): row["count"] for row in rows}
    return [(at, *(found.get((at, reason), 0) for reason in Reason.values)) for at in asked.moments]

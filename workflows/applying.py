"""Turning what runs ask for into the journal's one statement, on whatever connection it is given."""

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from .errors import Overtaken, Refusal, Stop
from .held import Entry, Held
from .moves import APPLY, APPLY_WITH_SIGNALS

Asked = Sequence[tuple[Held, Entry]]
Applied = dict[UUID, tuple[int, dict[str, Any] | None]]  # what the row said of nudges and requests

ENDED = """
SELECT FROM json_to_recordset(%s::json) AS t(path text, position int)
JOIN rekindle_step s ON s.workflow_id = %s AND s.path = t.path AND s.position = t.position AND s.status IN ('done', 'failed')
"""

dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def apply(cursor: Any, worker: int, asked: Asked) -> Applied:
    """Write all entries whose workflow is still ours and not locked by another. Returns those that were written."""
    rows: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    signals: list[dict[str, Any]] = []
    for held, entry in asked:
        row = {"id": str(held.id), "fence": held.fence if entry.fence is None else entry.fence, "n": entry.n}
        row |= {"nudges": held.nudges, "steps": len(entry.steps), "events": len(entry.events)}
        rows.append(row | entry.row)
        steps += entry.steps.values()
        events += entry.events
        signals += entry.signals
    given = {"rows": dumps(rows), "steps": dumps(steps), "events": dumps(events), "worker": worker}
    if signals:
        cursor.execute(APPLY_WITH_SIGNALS, given | {"signals": dumps(signals)})
    else:
        cursor.execute(APPLY, given)
    return {pk: (nudges, _decoded(wanted)) for pk, nudges, wanted in cursor.fetchall() if pk is not None}


def _decoded(asked: Any) -> Any:
    """An atomic step's cursor is Django's, which leaves jsonb as text."""
    return json.loads(asked) if isinstance(asked, str) else asked


def verdict(connection: Any, held: Held, entry: Entry, error: Exception) -> Stop:
    """Why the database would not have this entry: one of its steps has ended already, or a value it cannot store."""
    steps = [{"path": path, "position": position} for path, position in entry.steps]
    if connection.execute(ENDED, [json.dumps(steps), held.id]).rowcount:
        return Overtaken()
    return Refusal(str(error).strip())

"""The duty that looks for overdue wake-ups: due for long although nothing stands in the way. There should be none.

Only the next in line of each name is looked at: behind it, waiting is no wonder. It is nudged, and given a moment; what
is still there then is a fault, and the alert "Overdue without a reason" tells of it.
"""

import logging
import time
from typing import Any

from django.db import connections

from workflows.claiming import OBSTACLES
from workflows.conf import settings
from workflows.notify import poke

from .late import DUE_NAMES, count_due
from .tally import Tally

log = logging.getLogger("rekindle")

FOR_LONG = 60.0  # seconds
SHOWN = 5

_REASON = "CASE {} END".format(
    " ".join(
        f"WHEN {sql.format(name='w.name', version='w.version', refused_by='w.refused_by')} THEN '{why}'"
        for why, sql in OBSTACLES.items()
    )
)
NEXT_IN_LINE = f"""
WITH RECURSIVE {DUE_NAMES}
SELECT w.id::text, w.name, EXTRACT(EPOCH FROM now() - w.wake_at)::float8 AS seconds, {_REASON} AS reason
FROM names CROSS JOIN LATERAL (
    SELECT w.* FROM generate_series(0, 4) AS level CROSS JOIN LATERAL (
        SELECT * FROM rekindle_workflow
        WHERE name = names.name AND priority = level AND wake_at <= now() ORDER BY wake_at LIMIT 1
    ) w ORDER BY level LIMIT 1
) w WHERE w.wake_at < now() - %s * interval '1 second'
"""  # noqa: S608  (constants)


def wake(ran_by: str, deadline: float) -> Tally:
    if due := count_due():
        log.debug("Found %s events to process", due)
    else:
        log.debug("No events ready")
    before = overdue()
    waiting = {one["id"] for one in before if one["reason"] is None}
    tally = Tally(skipped=len(before) - len(waiting))
    if waiting:
        poke()
        time.sleep(2 * settings().poll)
        still = [one for one in overdue() if one["reason"] is None and one["id"] in waiting]
        tally.found = tally.failed = len(still)
        tally.note = {"nudged": len(waiting), "overdue": still[:SHOWN]} if still else {"nudged": len(waiting)}
        for one in still:
            log.error("%s is overdue without a reason", one["name"], extra={"workflow": one["id"]})
    reasons = sorted({f"{one['name']}: {one['reason']}" for one in before if one["reason"]})
    if reasons:
        tally.note["reasons"] = reasons[:SHOWN]
    return tally


def overdue(seconds: float = FOR_LONG) -> list[dict[str, Any]]:
    """The next in line of each name that is due for so long, with the reason if there is one."""
    with connections[settings().database].cursor() as cursor:
        cursor.execute(NEXT_IN_LINE, [seconds])
        return [dict(zip(("id", "name", "seconds", "reason"), row, strict=True)) for row in cursor.fetchall()]

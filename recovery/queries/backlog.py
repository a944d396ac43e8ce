"""What is due, and how much was done a minute lately: by the claim's own index and by the kept minutes."""

from ..backlog import MANY, Backlog, backlog
from ..late import DUE_SINCE
from .together import Rows, together

# Each of these can be asked together with others; both want a scope, which is a name or empty.
DUE = f"SELECT d.due, d.oldest FROM ({DUE_SINCE}) AS d(due, oldest)"  # noqa: S608  (constants)
PACE = """SELECT (sum(completed + failed + cancelled) / 3.0)::float8 AS a_minute FROM rekindle_recovery_metricminute
WHERE grain = 60 AND name = %(scope)s AND minute >= date_trunc('minute', now()) - interval '3 minutes'"""
GIVEN = {"scope": "", "seconds": 0, "most": MANY}


def read(due: Rows, pace: Rows) -> Backlog | None:
    return backlog(due[0]["due"], due[0]["oldest"], pace[0]["a_minute"])


def now(scope: str = "") -> Backlog | None:
    return read(*together(GIVEN | {"scope": scope}, due=DUE, pace=PACE).values())

"""One name: how its workflows do, what goes wrong with them, and its policy; in one round trip."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from workflows.conf import settings

from ..backlog import Backlog, backlog
from ..counts import Counts, summed
from ..late import DUE_SINCE
from ..lookout import HEARD
from ..ranges import Range
from ..search import spell
from ..tuning import EVERYBODY, stamp
from .backlog import PACE
from .figures import SERIES, filled, whole
from .together import Rows, together

MOST = 10_000  # more is "many"
FAILURES = 500  # looked at to group them
GROUPS = 20

_HEARD = HEARD.format(worker="k", stale_after="%(stale)s")
NOW = f"""SELECT EXISTS (SELECT FROM rekindle_workflow WHERE name = %(scope)s) AS used,
    (SELECT count(*) FROM rekindle_workflow WHERE worker_id IS NOT NULL AND name = %(scope)s) AS running,
    (SELECT count(*) FROM (SELECT FROM rekindle_workflow WHERE wake_at IS NOT NULL AND name = %(scope)s LIMIT {MOST}) w) AS waiting,
    (SELECT count(*) FROM rekindle_worker k WHERE {_HEARD} AND knows ? %(scope)s) AS workers, d.due, d.oldest
FROM ({DUE_SINCE}) AS d(due, oldest)"""  # noqa: S608  (constants)
# That a step failed is said by every failure: the step's own error tells more.
ERRORS = f"""SELECT step, type, message, count(*) AS count, max(finished_at) AS last, (array_agg(id ORDER BY finished_at DESC))[1] AS id
FROM (SELECT w.id, w.finished_at, COALESCE(s.name, '') AS step, left(COALESCE(s.error ->> 'type', w.error ->> 'type', ''), 80) AS type,
        left(COALESCE(s.error ->> 'message', w.error ->> 'message', ''), 160) AS message
    FROM (SELECT id, finished_at, error FROM rekindle_workflow WHERE status = 'failed' AND name = %(scope)s
            AND finished_at >= %(since)s AND finished_at <= %(end)s ORDER BY finished_at DESC LIMIT {FAILURES}) w
    LEFT JOIN LATERAL (SELECT name, error FROM rekindle_step WHERE workflow_id = w.id AND status = 'failed'
        AND w.error ->> 'type' = 'StepFailed' ORDER BY id DESC LIMIT 1) s ON true) f
GROUP BY 1, 2, 3 ORDER BY 4 DESC, 5 DESC LIMIT {GROUPS}"""  # noqa: S608  (constants)
POLICIES = "SELECT * FROM rekindle_policy WHERE name IN (%(scope)s, %(everybody)s)"


@dataclass(frozen=True, slots=True)
class Named:
    name: str
    now: dict[str, Any]
    counts: Counts  # over the range
    errors: Rows
    backlog: Backlog | None
    policy: dict[str, Any] | None
    everybodys_mode: str
    seen: str

    @property
    def known(self) -> bool:
        return bool(self.now["used"] or self.now["workers"] or self.policy)


def named(name: str, over: Range) -> Named:
    asked = whole(over)
    given = asked.given(name) | {"since": over.start, "everybody": EVERYBODY, "seconds": 0, "most": MOST}
    given |= {"stale": settings().stale_after}
    found = together(given, now=NOW, series=SERIES, errors=ERRORS, policies=POLICIES, pace=PACE)
    policies = {row["name"]: row for row in found["policies"]}
    policy = policies.get(name)
    if policy:
        policy |= {"changed_at": datetime.fromisoformat(policy["changed_at"])}
    return Named(
        name=name,
        now=found["now"][0],
        counts=summed(filled(asked, found["series"])),
        errors=[
            row | {"last": datetime.fromisoformat(row["last"]), "search": _search(name, row)} for row in found["errors"]
        ],
        backlog=backlog(found["now"][0]["due"], found["now"][0]["oldest"], found["pace"][0]["a_minute"]),
        policy=policy,
        everybodys_mode=policies.get(EVERYBODY, {}).get("mode", ""),
        seen=stamp(policy["changed_at"] if policy else None),
    )


def _search(name: str, row: dict[str, Any]) -> str:
    """What the list is searched for to see all of them; nothing if it cannot be said."""
    return spell(name=name, step=row["step"], error=row["type"]) if row["type"] else ""

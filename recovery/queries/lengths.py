"""How many steps a workflow will have, as far as those before it can tell.

Code may branch, so nobody knows for certain. Where the last ones of a name and version that completed had the same number of
steps, that is the number; where they differ, nothing is said.
"""

from collections.abc import Iterable
from time import monotonic

from django.db import connections

from workflows.conf import settings

LATELY = 30.0  # seconds for which what was read is trusted: code changes more seldom
FEWEST, ENOUGH = 3, 10  # that must have completed to tell anything; that are looked at
LOOKED_THROUGH = 100  # of a name, for those of one version that completed
MOST = 1000  # kinds remembered

Kind = tuple[str, int]  # name and version

LENGTHS = f"""SELECT k.name, k.version, CASE WHEN count(*) >= {FEWEST} AND min(s.steps) = max(s.steps) THEN min(s.steps) END
FROM unnest(%(names)s::text[], %(versions)s::int[]) AS k(name, version)
CROSS JOIN LATERAL (SELECT id FROM (SELECT id, version, status FROM rekindle_workflow w
        WHERE w.name = k.name AND w.finished_at IS NOT NULL ORDER BY w.finished_at DESC LIMIT {LOOKED_THROUGH}) w
    WHERE w.version = k.version AND w.status = 'completed' LIMIT {ENOUGH}) w
CROSS JOIN LATERAL (SELECT position + 1 AS steps FROM rekindle_step
    WHERE workflow_id = w.id AND path = '.' ORDER BY position DESC LIMIT 1) s
GROUP BY 1, 2"""  # noqa: S608  (constants)

_read: dict[Kind, tuple[float, int | None]] = {}


def lengths(kinds: Iterable[Kind]) -> dict[Kind, int | None]:
    """Of each name and version: the number of steps on its outermost path, None if it is not told."""
    wanted, now = set(kinds), monotonic()
    new = [kind for kind in sorted(wanted) if now - _read.get(kind, (float("-inf"), None))[0] > LATELY]
    if new:
        found = _ask(new)
        if len(_read) > MOST:
            _read.clear()
        _read.update({kind: (now, found.get(kind)) for kind in new})
    return {kind: _read[kind][1] for kind in wanted if kind in _read}


def _ask(kinds: list[Kind]) -> dict[Kind, int | None]:
    with connections[settings().database].cursor() as cursor:
        cursor.execute(LENGTHS, {"names": [name for name, _ in kinds], "versions": [version for _, version in kinds]})
        return {(name, version): steps for name, version, steps in cursor.fetchall()}

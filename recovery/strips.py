"""What is wrong with Rekindle itself, for the top of every page: the verdict on the whole, and where more is told."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from workflows.conf import settings
from workflows.models import Policy

from .lookout import HEARD
from .queries.together import together
from .verdict import Kind, Verdict, Whole, of_whole

PAGES = {Kind.NO_WORKER: "workers", Kind.NO_SCHEDULER: "workers", Kind.NOT_ENFORCED: "recovery"}

_HEARD = HEARD.format(worker="k", stale_after="%(stale)s")
ALIVE = f"SELECT EXISTS (SELECT FROM rekindle_worker k WHERE {_HEARD}) AS alive, now() AS now"  # noqa: S608  (constants)
RAN = """SELECT began_at FROM rekindle_recovery_duty WHERE name = 'sweep' AND ran_by = 'scheduled task'
ORDER BY began_at DESC LIMIT 1"""
CHANGED = """SELECT name, paused, mode, changed_by, changed_at FROM rekindle_policy
WHERE paused OR mode IN ('observe', 'off') ORDER BY name LIMIT 5"""


@dataclass(frozen=True, slots=True)
class Strip:
    verdict: Verdict
    page: str = ""  # the rail's name of the page that tells more


def strips() -> list[Strip]:
    return [Strip(verdict, PAGES.get(verdict.kind, "")) for verdict in of_whole(_seen())]


def _seen() -> Whole:
    """In one round trip, by the database's clock."""
    found = together({"stale": settings().stale_after}, workers=ALIVE, ran=RAN, changed=CHANGED)
    return Whole(
        now=datetime.fromisoformat(found["workers"][0]["now"]),
        live_workers=int(found["workers"][0]["alive"]),
        scheduler_ran=datetime.fromisoformat(found["ran"][0]["began_at"]) if found["ran"] else None,
        mode=settings().mode,
        policies=[_policy(row) for row in found["changed"]],
    )


def _policy(row: dict[str, Any]) -> Policy:
    return Policy(**row | {"changed_at": datetime.fromisoformat(row["changed_at"])})

"""Taking over what ended workers hold: the engine's part. Finding the dead is recovery's."""

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from django.db import connections, transaction
from django.db.models import F, OuterRef, Subquery
from django.db.models.functions import Greatest, Now

from . import signals
from .conf import settings
from .models import Event, Worker
from .moves import RELEASE
from .notify import poke

log = logging.getLogger("rekindle")

BATCH = 500  # taken over in one transaction
CROWD = 1000  # of one name that wait for their first recovery: no more of it are released until some were claimed

# In force where a name's own policy says nothing else: the mode of all, else of the settings. `p` is the name's policy.
MODE = "COALESCE(NULLIF(p.mode, ''), NULLIF(everyone.mode, ''), %(mode)s)"
# A policy or definition may ask for patience; it can only delay a take-over, never call a live worker dead.
PATIENT = "clock_timestamp() < COALESCE(k.last_seen_at, k.ended_at) + COALESCE(p.stale_after, w.stale_after, 0) * interval '1 second'"
OF_WORKERS = RELEASE.replace(
    "{which}",
    f"k.ended_at IS NOT NULL AND k.id = ANY(%(workers)s) AND {MODE} = 'enforce' AND NOT ({PATIENT}) "
    "AND w.name <> ALL(%(crowded)s)",
)
BY_HAND = RELEASE.replace("{which}", "k.ended_at IS NOT NULL AND w.id = %(workflow)s")
GIVEN_UP = RELEASE.replace("{which}", "w.id = %(workflow)s AND k.id = %(worker)s AND w.fence = %(fence)s")

# The holders, one probe of the index of held workflows for each: it costs the workers there are, not what they hold.
HOLDERS = """
WITH RECURSIVE holder AS (
    SELECT min(worker_id) AS id FROM rekindle_workflow WHERE worker_id IS NOT NULL
    UNION ALL
    SELECT (SELECT min(worker_id) FROM rekindle_workflow WHERE worker_id > holder.id) FROM holder WHERE holder.id IS NOT NULL
)
SELECT k.id FROM holder JOIN rekindle_worker k ON k.id = holder.id WHERE k.ended_at IS NOT NULL
"""

# What has to run alone waits apart from the others and holds nobody up. Read from the index `rekindle_orphans`.
CROWDED = """
SELECT name FROM rekindle_workflow WHERE status = 'running' AND worker_id IS NULL AND recovery_attempts = 0
GROUP BY name HAVING count(*) >= %s
"""

Taken = dict[str, Any]  # a row of RELEASE
witnesses: list[
    Callable[[list[Taken], dict[str, str]], None]
] = []  # told inside the transaction; recovery writes its record


# What a worker last wrote of what it holds: often younger than its heartbeat, and known to whoever never saw it alive.
LAST_WRITE = Subquery(
    Event.objects.filter(worker=OuterRef("pk"), workflow__worker=OuterRef("pk"), seq=F("workflow__seq"))
    .order_by("-at")
    .values("at")[:1]
)


def end_worker(
    worker: Worker, why: str, *, signs: Sequence[Any] = (), still: Callable[[], bool] = lambda: True
) -> bool:
    """Declare a worker dead, if it `still` looks so under the lock that keeps a claim of its own from slipping in.

    Of a dead one, the newest sign of life is kept: `signs` are moments at which the caller knows that it lived. A
    silent one is measured by its heartbeat, which is what it was missed for.
    """
    database = settings().database
    with transaction.atomic(using=database):
        locked = Worker.objects.using(database).select_for_update().filter(pk=worker.pk, ended_at=None).first()
        if locked is None or not still():
            return False
        seen = Greatest("heartbeat_at", LAST_WRITE, *signs) if why == "died" else F("heartbeat_at")
        Worker.objects.using(database).filter(pk=worker.pk).update(ended_at=Now(), ended_why=why, last_seen_at=seen)
        return True


def ended_holders() -> list[int]:
    """Workers that have ended and still hold something."""
    with connections[settings().database].cursor() as cursor:
        cursor.execute(HOLDERS)
        return [row[0] for row in cursor.fetchall()]


def crowded_names() -> list[str]:
    """Names of which so many orphans are due that releasing more would only put healthy work behind them."""
    with connections[settings().database].cursor() as cursor:
        cursor.execute(CROWDED, [CROWD])
        return [row[0] for row in cursor.fetchall()]


def take_over(workers: Sequence[int], *, detected_by: str, crowded: Sequence[str] = ()) -> list[Taken]:
    """Make up to a batch of what these ended workers hold due again, where the mode is to enforce; not of crowded names."""
    about = {"detected_by": detected_by, "by": "", "reason": ""}
    return _release(
        OF_WORKERS, about, workers=list(workers), crowded=list(crowded), most=BATCH, delay=settings().recovery_delay
    )


def release(workflow_id: UUID, *, by: str = "", reason: str = "", detected_by: str = "operator") -> Taken | None:
    """Take over one workflow whose worker has ended, at once, whatever the mode. None if there is nothing to take."""
    about = {"detected_by": detected_by, "by": by, "reason": reason}
    taken = _release(BY_HAND, about, workflow=workflow_id, most=1, delay=0 if by else settings().recovery_delay)
    return taken[0] if taken else None


def give_up(workflow_id: UUID, worker: int, fence: int, finding: str) -> Taken | None:
    """A live worker lets go of what it holds itself: a body that does not come back. It counts as any other loss."""
    about = {"detected_by": "worker", "by": "", "reason": ""}
    whose = {"workflow": workflow_id, "worker": worker, "fence": fence, "finding": finding}
    taken = _release(GIVEN_UP, about, most=1, delay=settings().recovery_delay, **whose)
    return taken[0] if taken else None


def _release(query: str, about: dict[str, str], **given: Any) -> list[Taken]:
    database = settings().database
    with transaction.atomic(using=database):
        with connections[database].cursor() as cursor:
            cursor.execute(query, about | {"mode": settings().mode, "finding": None} | given)
            names = [column[0] for column in cursor.description]
            taken = [_decoded(dict(zip(names, row, strict=True))) for row in cursor.fetchall()]
        if taken:
            for witness in witnesses:
                witness(taken, about)
            transaction.on_commit(poke, using=database)
        for row in taken:
            if row["outcome"] != "released":
                _tell_end(row)
    return taken


def _tell_end(row: Taken) -> None:
    gave_up = row["outcome"] == "gave_up"
    if gave_up:
        facts = {"workflow": str(row["id"]), "workflow_name": row["name"], "attempt": row["recovery_attempts"]}
        log.error(
            "Max recovery attempts (%s) exceeded for workflow %s", row["recovery_attempts"], row["id"], extra=facts
        )
    signals.tell_finished(row["id"], row["name"], row["key"], "failed" if gave_up else "cancelled")


def _decoded(row: Taken) -> Taken:
    """Django leaves jsonb as text."""
    return row | {name: json.loads(row[name]) for name in ("done", "open")}

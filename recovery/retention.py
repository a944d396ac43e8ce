"""The duty that forgets: finished workflows after a month, the history of the watch after a year and a bit.

In bounded batches, each its own transaction, until nothing is left or the time is up; the next run goes on.
"""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import connections, transaction
from django.db.models import Exists, Model, OuterRef, QuerySet
from django.db.models.functions import Now

from workflows.conf import settings
from workflows.models import Worker, Workflow

from .models import Alert, AuditEntry, Batch, BatchItem, Duty, MetricMinute, Note, Recovery
from .models.metric import DAY, HOUR, MINUTE
from .tally import Tally

BATCH = 500
QUIET_DUTIES = timedelta(days=7)  # of runs that found nothing, nobody asks after a week
AUDIT_AT_LEAST = timedelta(days=30)  # younger entries the audit's trigger does not let go

# Per name, because a policy may keep one name for years: its old rows must not be looked at again each minute. What came
# of its rescues is read from its steps, so it stays until that is known.
FINISHED = """
WITH RECURSIVE names(name) AS (
    (SELECT name FROM rekindle_workflow WHERE finished_at IS NOT NULL ORDER BY name LIMIT 1)
    UNION ALL
    SELECT (SELECT w.name FROM rekindle_workflow w WHERE w.finished_at IS NOT NULL AND w.name > names.name ORDER BY w.name LIMIT 1)
    FROM names WHERE names.name IS NOT NULL
), kept AS (
    SELECT n.name, COALESCE(p.keep_finished, everyone.keep_finished, %(keep)s) * interval '1 second' AS keep
    FROM names n LEFT JOIN rekindle_policy p ON p.name = n.name LEFT JOIN rekindle_policy everyone ON everyone.name = '*'
    WHERE n.name IS NOT NULL
), old AS MATERIALIZED (
    SELECT w.id, kept.keep FROM kept CROSS JOIN LATERAL (
        SELECT id FROM rekindle_workflow f WHERE name = kept.name AND finished_at < now() - kept.keep
          AND NOT EXISTS (SELECT FROM rekindle_recovery_recovery r WHERE r.workflow_id = f.id AND r.outcome = 'pending')
        ORDER BY finished_at LIMIT %(most)s) w LIMIT %(most)s
)
SELECT count(*) FILTER (WHERE forgotten), count(*) FROM (
    SELECT rekindle_forget(id, keep) AS forgotten FROM (SELECT * FROM old ORDER BY id) AS old) AS done
"""

Forget = Callable[[], tuple[int, int]]  # how many went, how many were looked at


def forget(ran_by: str, deadline: float) -> Tally:
    """The counts of what went are in the note; `recovered` is for workflows that came back, not for these."""
    tally = Tally()
    for what, batch in _batches():
        if gone := _until_done(batch, deadline):
            tally.note[what] = gone
    return tally


def _until_done(batch: Forget, deadline: float) -> int:
    total = 0
    while time.monotonic() < deadline:
        gone, seen = batch()
        total += gone
        if seen < BATCH or not gone:
            break
    return total


def _batches() -> Iterator[tuple[str, Forget]]:
    history = timedelta(seconds=settings().keep_history)
    yield "workflows", _finished_workflows
    yield "recoveries", partial(_delete, _of(Recovery).filter(detected_at__lt=Now() - history))
    yield "alerts", partial(_delete, _of(Alert).filter(resolved_at__lt=Now() - history))
    yield "audit entries", partial(_delete, _of(AuditEntry).filter(at__lt=Now() - max(history, AUDIT_AT_LEAST)))
    over = _of(Batch).filter(ended_at__lt=Now() - history)
    yield "batch items", partial(_delete, _of(BatchItem).filter(batch__in=over))
    yield "batches", partial(_delete, over.filter(~Exists(BatchItem.objects.filter(batch=OuterRef("pk")))))
    yield "notes", partial(_delete, _of(Note).filter(at__lt=Now() - history))
    yield (
        "figures",
        partial(_delete, _of(MetricMinute).filter(grain__in=[MINUTE, HOUR, DAY], minute__lt=Now() - history)),
    )
    yield "duties", partial(_delete, _of(Duty).filter(began_at__lt=Now() - history))
    quiet = _of(Duty).filter(found=0, recovered=0, failed=0, error="", ended_at__isnull=False)
    yield "quiet duties", partial(_delete, quiet.filter(began_at__lt=Now() - QUIET_DUTIES))
    holds = Exists(Workflow.objects.filter(worker=OuterRef("pk")))
    ended = _of(Worker).filter(~holds, ended_at__lt=Now() - timedelta(seconds=settings().keep_finished))
    yield "workers", partial(_delete, ended)


def _finished_workflows() -> tuple[int, int]:
    with transaction.atomic(using=settings().database), connections[settings().database].cursor() as cursor:
        cursor.execute(FINISHED, {"keep": settings().keep_finished, "most": BATCH})
        gone, seen = cursor.fetchone()
        return gone, seen


def _delete(old: QuerySet[Any]) -> tuple[int, int]:
    with transaction.atomic(using=old.db):
        with connections[old.db].cursor() as cursor:
            cursor.execute("SELECT set_config('rekindle.retention', 'audit', true)")  # only the audit's trigger asks
        ids = list(old.order_by("pk").values_list("pk", flat=True)[:BATCH])
        old.model._default_manager.using(old.db).filter(pk__in=ids).delete()
        return len(ids), len(ids)


def _of(model: type[Model]) -> QuerySet[Any]:
    return model._default_manager.using(settings().database)

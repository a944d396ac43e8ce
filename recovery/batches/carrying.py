"""Carrying a batch out: item after item, each its own transaction, shared by whoever has hands free.

Inside it the item is locked, the act is done and audited, and last the batch's row is counted up, which is refused once
the batch is stopped: then the act is undone with it. So nothing can die between an act and its result, no item is done
twice, and when a stop has been committed nothing follows it.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from django.db import OperationalError, connections, transaction
from django.db.models import QuerySet

from workflows.commands.table import clean
from workflows.conf import settings
from workflows.errors import Refused
from workflows.models import Workflow

from .. import acts
from ..models import Batch, BatchItem
from ..models.batch import OPEN, Result
from ..tally import Tally

log = logging.getLogger("rekindle")

SLICE = 100  # items of one batch, before the next one has its turn

# Runners wait for each other here, no longer than a commit takes. The last item ends the batch; a stopped one counts none.
WRITE = """
WITH counted AS (
    UPDATE rekindle_recovery_batch SET done = done + (%(result)s = 'done')::int,
        skipped = skipped + (%(result)s = 'skipped')::int, failed = failed + (%(result)s = 'failed')::int,
        state = CASE WHEN done + skipped + failed + 1 = total THEN 'done' ELSE 'running' END,
        ended_at = CASE WHEN done + skipped + failed + 1 = total THEN statement_timestamp() END,
        started_at = COALESCE(started_at, statement_timestamp()), moved_at = statement_timestamp()
    WHERE id = %(batch)s AND state IN ('waiting', 'running') RETURNING id
)
UPDATE rekindle_recovery_batchitem SET result = %(result)s, sentence = %(sentence)s, at = statement_timestamp()
FROM counted WHERE rekindle_recovery_batchitem.id = %(item)s
"""

VERBS: dict[str, Callable[..., acts.Done]] = {
    "recover": acts.recover,
    "revive": acts.revive,
    "pause": acts.pause,
    "resume": acts.resume,
    "move": acts.move_to,
    "cancel": acts.cancel,
    "fail": acts.fail,
    "discard": acts.discard,
}


def carry_on(deadline: float) -> Counter[str]:
    """Of every open batch a slice in turn, until nothing is left for these hands or the (monotonic) time is up."""
    total: Counter[str] = Counter()
    while time.monotonic() < deadline:
        done: Counter[str] = Counter()
        for batch in open_batches().order_by("pk"):
            done += _slice(batch, deadline)
        if not done:
            break
        total += done
    return total


def duty(ran_by: str, deadline: float) -> Tally:
    """What was acted on is in the note; `recovered` is for workflows that came back, not for these."""
    done = carry_on(deadline)
    note = {"done": done[Result.DONE]} if done[Result.DONE] else {}
    return Tally(found=done.total(), failed=done[Result.FAILED], skipped=done[Result.SKIPPED], note=note)


def open_batches() -> QuerySet[Batch]:
    return Batch.objects.using(settings().database).filter(state__in=OPEN)


def _slice(batch: Batch, deadline: float) -> Counter[str]:
    """The oldest workflows first. What another runner has in hand is left to it."""
    done: Counter[str] = Counter()
    waiting = _items().filter(batch=batch, result="").order_by("workflow_id").values_list("pk", flat=True)
    for pk in list(waiting[:SLICE]):
        if time.monotonic() >= deadline:
            break
        if result := _carry(batch, pk):
            done[result] += 1
    return done


def _carry(batch: Batch, pk: int) -> str:
    """What came of an item; nothing, if it is not ours to do. A deadlock deserves a second try; no item stops the others."""
    for last in (False, True):
        try:
            return _once(batch, pk, _act)
        except OperationalError as error:
            if last:
                return _fail(batch, pk, error)
        except Exception as error:
            return _fail(batch, pk, error)
    return ""


def _fail(batch: Batch, pk: int, error: Exception) -> str:
    """In a new transaction. If the connection is lost this fails too, and the item waits for the next runner."""
    log.exception("an item of batch %s met something it should not", batch.pk, extra={"batch": batch.pk, "item": pk})
    return _once(batch, pk, lambda batch, item: (Result.FAILED, f"It could not be done: {error}"))


def _once(batch: Batch, pk: int, act: Callable[[Batch, BatchItem], tuple[str, str]]) -> str:
    with transaction.atomic(using=settings().database):
        ours = _items().select_for_update(skip_locked=True, of=("self",))
        item = ours.filter(pk=pk, result="", batch__state__in=OPEN).first()
        if item is None:
            return ""
        result, sentence = act(batch, item)
        if not _write(item, result, sentence):
            transaction.set_rollback(True, using=settings().database)
            return ""
        return result


def _act(batch: Batch, item: BatchItem) -> tuple[str, str]:
    """A refusal is a result. The token is the batch's: whatever happens, it acts once on a workflow."""
    signed: Any = {"by": batch.by, "via": "batch", "reason": batch.reason, "fence": item.fence}
    if batch.act in ("resume", "move"):
        signed |= {"basket": batch.basket} | ({"to": batch.to} if batch.act == "move" else {})
    try:
        done = VERBS[_verb(batch, item)](item.workflow_id, token=f"batch {batch.pk}", **signed)
    except Refused as refusal:
        return Result.SKIPPED, str(refusal)
    return Result.DONE if done.changed else Result.SKIPPED, done.sentence


def _verb(batch: Batch, item: BatchItem) -> str:
    """What is over is revived, as in the dialog."""
    rows = Workflow.objects.using(settings().database).filter(pk=item.workflow_id)
    over = batch.act == "recover" and rows.filter(finished_at__isnull=False).exists()
    return "revive" if over else batch.act


def _write(item: BatchItem, result: str, sentence: str) -> bool:
    given: dict[str, Any] = {
        "batch": item.batch_id,
        "item": item.pk,
        "result": result,
        "sentence": clean(sentence, 500),
    }
    with connections[settings().database].cursor() as cursor:
        cursor.execute(WRITE, given)
        return bool(cursor.rowcount)


def _items() -> QuerySet[BatchItem]:
    return BatchItem.objects.using(settings().database)

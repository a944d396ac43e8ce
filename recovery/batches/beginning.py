"""A batch begins: which workflows, with which fences, is settled here and never again."""

from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connections, transaction
from django.db.models import F, QuerySet, Value
from django.db.models.functions import Coalesce, Now

from workflows.conf import settings
from workflows.errors import NotFound, Refused
from workflows.models import Workflow
from workflows.values import text
from workflows.verbs import check_destination

from ..auditing import note_batch
from ..models import Batch, BatchItem
from ..models.batch import State
from .carrying import VERBS

MOST = 100_000  # workflows of one batch
REASON = 500  # characters of one

FREEZE = f"""INSERT INTO {BatchItem._meta.db_table} (batch_id, workflow_id, workflow_name, workflow_key, fence, result, sentence)
SELECT %s, m.id, m.name, m.called, m.fence, '', '' FROM """  # noqa: S608  (the table's name)


def begin(
    act: str,
    workflows: QuerySet[Workflow, Any],
    *,
    by: str,
    via: str,
    reason: str,
    chosen: str,
    query: str = "",
    basket: str = "",
    to: str = "",
    token: str = "",
    confirmed: int | None = None,
) -> Batch:
    """Freeze which workflows it is about, the oldest first; whoever has hands free carries it out.

    Any query will do that is not sliced yet. `chosen` says in words how they were chosen, `query` is the address of the
    list that showed them. `basket` says which wait is resumed or moved, else it is the deepest; `to` where a move goes. `confirmed` is how many somebody saw and agreed to: with more the batch does not begin. The
    same token begins it once.
    """
    if act not in VERBS:
        raise Refused(f"Nothing was done: {act!r} is no act for many workflows; there are {', '.join(VERBS)}.")
    if not text(reason, "The reason", REASON).strip():
        raise Refused("Nothing was done: say why, a reason is required.")
    if act == "move":
        check_destination(to)
    most = MOST if confirmed is None else min(confirmed, MOST)
    given = {"act": act, "chosen": chosen[:500], "query": query[:3000], "reason": reason, "by": by[:200], "via": via}
    given |= {"basket": basket, "to": to}
    with transaction.atomic(using=settings().database):
        batches = Batch.objects.using(settings().database)
        if token:
            batch, new = batches.get_or_create(token=token, defaults=given | {"confirmed": most})
            if not new:
                return batch
        else:
            batch = batches.create(confirmed=most, **given)
        batch.total = _freeze(batch, workflows, most)
        batch.confirmed = most if confirmed is not None else batch.total
        batch.save(update_fields=["total", "confirmed"])
        _tell_begun(batch)
    batch.refresh_from_db()
    return batch


def stop(batch_id: int, *, by: str, via: str, reason: str = "") -> Batch:
    """Before the next item: what is under way is either committed before this is, or undone."""
    database = settings().database
    with transaction.atomic(using=database):
        batch = Batch.objects.using(database).select_for_update().filter(pk=batch_id).first()
        if batch is None:
            raise NotFound(f"There is no batch {batch_id}; retention may have removed it.")
        if not batch.is_open:
            raise Refused(f"Nothing was stopped: batch {batch_id} is {batch.state} already.")
        before, batch.state, batch.stopped_by = batch.state, State.STOPPED, by[:200]
        Batch.objects.using(database).filter(pk=batch_id).update(
            state=State.STOPPED, stopped_by=by[:200], ended_at=Now()
        )
        after = {"state": batch.state, "handled": batch.handled, "left": batch.left}
        note_batch("stop", batch, by=by, via=via, reason=reason, before={"state": before}, after=after)
    batch.refresh_from_db()
    return batch


def _freeze(batch: Batch, workflows: QuerySet[Workflow, Any], most: int) -> int:
    """One statement. One more than agreed to is asked for, because that is how it shows that there are more."""
    wanted = workflows.using(settings().database).order_by("pk").annotate(called=Coalesce(F("key"), Value("")))
    rows = wanted.values("id", "name", "called", "fence")[: most if most == MOST else most + 1]
    try:
        sql, given = rows.query.get_compiler(settings().database).as_sql()
    except EmptyResultSet:
        sql, given = "", ()
    found = 0
    if sql:
        with connections[settings().database].cursor() as cursor:
            cursor.execute(f"{FREEZE} ({sql}) m", [batch.pk, *given])
            found = cursor.rowcount
    if not found:
        raise Refused("Nothing was done: no workflow matches any more.")
    if found > most:
        raise Refused(f"Nothing was done: there are more than the {most:,} you saw. Look at it once more.")
    return found


def _tell_begun(batch: Batch) -> None:
    after = {"act": batch.act, "chosen": batch.chosen, "total": batch.total} | ({"to": batch.to} if batch.to else {})
    note_batch("begin", batch, by=batch.by, via=batch.via, reason=batch.reason, after=after)

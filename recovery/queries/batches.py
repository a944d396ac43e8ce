"""Batches: the recent ones, one of them, a page of its items; and what a batch about a list would hold."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from workflows.conf import settings
from workflows.models import Workflow

from ..batches import MOST
from ..models import Batch, BatchItem

PAGE = 50
SAMPLE = 100  # of those that match, whose plans are made before anybody agrees
EXPORT = ("workflow_id", "workflow_name", "workflow_key", "result", "sentence", "at")


@dataclass(frozen=True, slots=True)
class Matching:
    """What an act on everything in a list would be about."""

    count: int
    more: bool = False  # than one batch takes
    newest: UUID | None = None  # what came after it was not seen
    sample: list[UUID] = field(default_factory=list)  # the oldest


@dataclass(frozen=True, slots=True)
class Page:
    batches: list[Any]  # each with `now`, by the database's clock
    older: int | None  # where the next page begins


@dataclass(frozen=True, slots=True)
class Items:
    items: list[BatchItem]
    after: UUID | None  # where the next page begins


def workflows(wanted: Q, newest: UUID | None = None) -> QuerySet[Workflow]:
    found = Workflow.objects.using(settings().database).filter(wanted)
    return found.filter(pk__lte=newest) if newest else found


def matching(wanted: Q) -> Matching:
    found = workflows(wanted).values_list("pk", flat=True)
    count = found.order_by()[: MOST + 1].count()
    if not count:
        return Matching(0)
    newest, sample = found.order_by("-pk").first(), list(found.order_by("pk")[:SAMPLE])
    return Matching(min(count, MOST), count > MOST, newest, sample)


def page(before: int | None = None) -> Page:
    batches = Batch.objects.using(settings().database).annotate(now=Now()).order_by("-pk")
    found = list((batches.filter(pk__lt=before) if before else batches)[: PAGE + 1])
    return Page(found[:PAGE], found[PAGE - 1].pk if len(found) > PAGE else None)


def one(pk: int) -> Any | None:
    """With `now`, by the database's clock."""
    return Batch.objects.using(settings().database).annotate(now=Now()).filter(pk=pk).first()


def items(pk: int, result: str | None = None, after: UUID | None = None) -> Items:
    """In the order of their turns. The result is empty for those whose turn has not come, None for all."""
    found = _items(pk, result)
    rows = list((found.filter(workflow_id__gt=after) if after else found)[: PAGE + 1])
    return Items(rows[:PAGE], rows[PAGE - 1].workflow_id if len(rows) > PAGE else None)


def export(pk: int, result: str | None = None) -> Iterator[tuple[Any, ...]]:
    """A line for each, without holding them."""
    return _items(pk, result).values_list(*EXPORT).iterator(chunk_size=500)


def _items(pk: int, result: str | None) -> QuerySet[BatchItem]:
    found = BatchItem.objects.using(settings().database).filter(batch=pk).order_by("workflow_id")
    return found if result is None else found.filter(result=result)

"""The record of who did what: a page of it, or all that matches."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from workflows.conf import settings

from ..models import AuditEntry

PAGE = 50


@dataclass(frozen=True, slots=True)
class Filter:
    actor: str = ""
    act: str = ""
    subject: str = ""  # its kind, its id, or the whole of its name


@dataclass(frozen=True, slots=True)
class Page:
    entries: list[AuditEntry]
    older: int | None  # where the next page begins


def page(asked: Filter, before: int | None = None) -> Page:
    entries = _matching(asked)
    found = list((entries.filter(pk__lt=before) if before else entries)[: PAGE + 1])
    return Page(found[:PAGE], found[PAGE - 1].pk if len(found) > PAGE else None)


def every(asked: Filter) -> Iterator[AuditEntry]:
    """As many as there are, without holding them."""
    return _matching(asked).iterator(chunk_size=500)


def _matching(asked: Filter) -> QuerySet[AuditEntry]:
    entries = AuditEntry.objects.using(settings().database).order_by("-pk")
    if asked.actor:
        entries = entries.filter(actor=asked.actor)
    if asked.act:
        entries = entries.filter(act=asked.act)
    if asked.subject:
        word = asked.subject
        entries = entries.filter(Q(subject=word) | Q(subject_id=word) | Q(subject_name=word))
    return entries

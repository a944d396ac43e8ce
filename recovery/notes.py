"""One line for whoever comes next, left on a workflow or on the death of a worker. Note and audit entry are one commit."""

from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from workflows.commands.table import clean
from workflows.conf import settings
from workflows.errors import NotFound, Refused
from workflows.models import Worker, Workflow
from workflows.values import text

from .auditing import note_change
from .models import Note, Recovery

LONGEST = 300
MOST = 20  # on one thing; more belongs into a document
SUBJECTS = {"workflow": "workflow", "worker": "death of a worker"}


@dataclass(frozen=True, slots=True)
class Subject:
    """What a note is about: by name and number, so that the note outlives it."""

    kind: str  # of SUBJECTS
    pk: str
    name: str

    def __str__(self) -> str:
        return self.name


def subject(kind: str, pk: str) -> Subject:
    """Raises NotFound, with a sentence, for what never was."""
    name = _workflow(pk) if kind == "workflow" else _worker(pk) if kind == "worker" else ""
    if not name:
        raise NotFound(f"There is no {SUBJECTS.get(kind, 'such thing')} {clean(pk, 40)} to leave a note on.")
    return Subject(kind, pk, name)


def leave(about: Subject, line: str, *, by: str) -> Note:
    """The same line twice in a row is one note: a double click is one act."""
    line = clean(text(line.strip(), "The note", LONGEST), LONGEST)
    if not line:
        raise Refused("Nothing was noted: write a line.")
    with transaction.atomic(using=settings().database):
        left = list(on(about).select_for_update()[:MOST])
        if left and (left[0].text, left[0].author) == (line, by[:200]):
            return left[0]
        if len(left) == MOST:
            raise Refused(f"Nothing was noted: {MOST} notes are the most; remove one first.")
        given = {"subject": about.kind, "subject_id": about.pk, "subject_name": about.name[:320]}
        note = Note.objects.using(settings().database).create(author=by[:200], text=line, **given)
        note_change("note", about.kind, about, by=by, via="page", before=None, after={"note": line})
    return note


def remove(about: Subject, pk: int, *, by: str) -> None:
    """Gone from the page; the audit remembers it. Removed already: nothing is done."""
    with transaction.atomic(using=settings().database):
        note = on(about).select_for_update().filter(pk=pk).first()
        if note is None:
            return
        told = {"note": note.text, "author": note.author}
        note_change("remove note", about.kind, about, by=by, via="page", before=told, after=None)
        note.delete()


def on(about: Subject) -> QuerySet[Note]:
    rows = Note.objects.using(settings().database).filter(subject=about.kind, subject_id=about.pk)
    return rows.order_by("-pk")


def _workflow(pk: str) -> str:
    try:
        found = Workflow.objects.using(settings().database).filter(pk=UUID(pk)).first()
    except ValueError:
        return ""
    return str(found) if found and str(found.pk) == pk else ""


def _worker(pk: str) -> str:
    """Workers are forgotten before their recoveries are."""
    if not (pk.isascii() and pk.isdecimal() and len(pk) < 19):
        return ""
    worker = Worker.objects.using(settings().database).filter(pk=pk).first()
    rescue = None if worker else Recovery.objects.using(settings().database).filter(worker=pk).first()
    return str(worker) if worker else (rescue.worker_name or pk) if rescue else ""

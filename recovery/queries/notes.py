"""Notes, for pages that show several things they may be on."""

from collections.abc import Iterable

from workflows.conf import settings

from ..models import Note

SHOWN = 200

# As JSON with the row of a workflow.
ON_WORKFLOW = """(SELECT jsonb_agg(to_jsonb(n) ORDER BY n.id DESC) FROM (
    SELECT id, at, author, text FROM rekindle_recovery_note
    WHERE subject = 'workflow' AND subject_id = rekindle_workflow.id::text ORDER BY id DESC LIMIT 20) n)"""


def notes_on(kind: str, pks: Iterable[object]) -> dict[str, list[Note]]:
    """By the id of what they are on, as text; the newest first. One question, however many are asked for."""
    found: dict[str, list[Note]] = {}
    rows = Note.objects.using(settings().database).filter(subject=kind, subject_id__in=[str(pk) for pk in pks])
    for note in rows.order_by("-pk")[:SHOWN]:
        found.setdefault(note.subject_id, []).append(note)
    return found

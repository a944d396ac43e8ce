"""Start the demo: on an empty page, for whoever wants to see something before writing a workflow of their own.

What it starts is the project's business, which adds itself. In production, and in a project of somebody else's, nobody does,
and there is no such button.
"""

from collections.abc import Callable
from dataclasses import dataclass

from django.db import connections, transaction

from workflows.conf import settings
from workflows.errors import Refused
from workflows.models import Workflow

from .auditing import note_change

STARTING = 7_261_103  # any number: who holds this advisory lock may start it

starters: list[Callable[[], None]] = []


@dataclass(frozen=True, slots=True)
class Demo:
    """What the audit names."""

    pk: str = "demo"

    def __str__(self) -> str:
        return "the demo's workflows"


def is_offered() -> bool:
    return bool(starters)


def start(*, by: str, via: str = "page") -> int:
    """Returns how many workflows it began with. Once: whoever presses second finds them there."""
    database = settings().database
    workflows = Workflow.objects.using(database)
    with transaction.atomic(using=database):
        with connections[database].cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [STARTING])
        if workflows.exists():
            raise Refused("Nothing was done: there are workflows already, and the demo is for an empty database.")
        for begin in starters:
            begin()
        begun = workflows.count()
        note_change("start", "demo", Demo(), by=by, via=via, after={"workflows": begun})
    return begun

"""The engine on the caller's own Django connection and thread: no worker, no threads, inside a test's transaction."""

from typing import Any

import psycopg
from django.db import connections, transaction
from psycopg.types.json import JsonbLoader, JsonLoader

from .applying import Applied, Asked, apply, verdict
from .conf import settings
from .errors import Fenced
from .held import Held, StepKey
from .zombies import refuse


class InlineConnection:
    """What the claim needs of a connection, over Django's. Django leaves jsonb as text; the engine wants it decoded."""

    def cursor(self, **options: Any) -> psycopg.Cursor[Any]:
        wrapper = connections[settings().database]
        wrapper.ensure_connection()
        raw: psycopg.Connection[Any] = wrapper.connection
        cursor = psycopg.Cursor(raw, **options)
        cursor.adapters.register_loader("json", JsonLoader)
        cursor.adapters.register_loader("jsonb", JsonbLoader)
        return cursor

    def execute(self, query: str, params: Any = None) -> psycopg.Cursor[Any]:
        return self.cursor().execute(query.encode(), params)

    def transaction(self) -> Any:
        return transaction.atomic(using=settings().database)


class InlineJournal:
    """Writes each entry as soon as somebody waits for it."""

    def __init__(self, worker: int) -> None:
        self.worker = worker

    def submit(self, held: Held) -> None:
        with held.lock:
            entry, held.pending = held.pending, None
        if entry is None:
            return
        held.applied += 1
        entry.n = held.applied
        connection = InlineConnection()
        try:
            with connection.transaction():
                applied = self.apply(connection.cursor(), [(held, entry)])
        except (psycopg.Error, ValueError) as error:
            held.refuse(verdict(connection, held, entry, error), entry)
            return
        if held.id not in applied:
            refuse(held, self.worker, connection)
            held.refuse(Fenced(), entry)
            return
        held.fence += entry.row.get("raises", 0)
        held.nudge(*applied[held.id])
        for waiter in entry.waiters:
            waiter.release()

    def submit_later(self, held: Held, key: StepKey | None = None) -> None:
        """It goes with whatever comes next."""

    def apply(self, cursor: Any, asked: Asked) -> Applied:
        return apply(cursor, self.worker, asked)

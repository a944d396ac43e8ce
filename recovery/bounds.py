"""Nobody waits for ever on a connection of the host's: for the time of a duty it has time-outs of its own.

One that matters: a process frozen inside a transaction keeps its locks, and with them the duty, from everybody else.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, connections

PUT = "SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) AS t(name, value)"


@contextmanager
def bounded(database: str, seconds: float) -> Iterator[None]:
    engine = connections[database]
    if engine.in_atomic_block:  # somebody else's transaction, with somebody else's limits
        yield
        return
    limits = {
        "statement_timeout": f"{int(seconds * 1000)}ms",
        "lock_timeout": "5s",
        "idle_in_transaction_session_timeout": "10s",
    }
    names = list(limits)
    with engine.cursor() as cursor:
        cursor.execute(
            "SELECT array_agg(current_setting(name) ORDER BY i) FROM unnest(%s::text[]) WITH ORDINALITY AS t(name, i)",
            [names],
        )
        before = cursor.fetchone()[0]
        cursor.execute(PUT, [names, list(limits.values())])
    session = engine.connection
    try:
        yield
    finally:
        if engine.connection is session:  # else it was lost meanwhile, and its limits with it
            try:
                with engine.cursor() as cursor:
                    cursor.execute(PUT, [names, before])
            except DatabaseError:
                engine.close()

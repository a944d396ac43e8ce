"""Nobody waits for ever on a connection of the host's: for the time of a duty, or of a page, it has time-outs of its own.

One that matters: a process frozen inside a transaction keeps its locks, and with them the duty, from everybody else.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from django.db import DatabaseError, connections, transaction
from psycopg.pq import TransactionStatus

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


@contextmanager
def limited(database: str, seconds: float, *, together: bool) -> Iterator[None]:
    """For a page: no statement of its transactions takes longer. `together`: all of it is one transaction.

    The limit is LOCAL to each transaction, so that nothing of it is left on a connection that is the host's again as
    soon as the page is drawn, or on one that a pooler has given to somebody else by then.
    """
    engine = connections[database]

    def limit(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        if engine.in_atomic_block and engine.connection.info.transaction_status == TransactionStatus.IDLE:
            with engine.wrap_database_errors:  # not one of the page's own queries
                engine.connection.execute(f"SET LOCAL statement_timeout = {int(seconds * 1000)}")
        return execute(sql, params, many, context)

    alone = together and not engine.in_atomic_block
    with engine.execute_wrapper(limit), transaction.atomic(using=database) if alone else nullcontext():
        yield

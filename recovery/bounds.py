"""Nobody waits for ever on a connection of the host's: for the time of a duty, or of a page, it has time-outs of its own.

One that matters: a process frozen inside a transaction keeps its locks, and with them the duty, from everybody else.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from django.db import DatabaseError, connections
from psycopg import ClientCursor
from psycopg.pq import TransactionStatus

from workflows.conf import settings
from workflows.connections import behind_pooler

PUT = "SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) AS t(name, value)"
LOCAL = {"idle_in_transaction_session_timeout": "10s", "max_parallel_workers_per_gather": "0", "jit": "off"}


@contextmanager
def bounded(database: str, seconds: float) -> Iterator[None]:
    engine = connections[database]
    if engine.in_atomic_block or _is_pooled(database):  # somebody else's transaction or session, with their limits
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


def _is_pooled(database: str) -> bool:
    """What a session is set to behind a transaction pooler is soon set for others."""
    return database == settings().database and behind_pooler()


@contextmanager
def limited(database: str, seconds: float) -> Iterator[None]:
    """For a page: no statement takes longer; none is compiled, or has other processes help, which takes longer than it does; and
    a process that is frozen in an act does not keep its locks.

    The limits are LOCAL to a transaction, so that nothing of them is left on a connection that is the host's again as soon
    as the page is drawn, or on one that a pooler has given to somebody else by then. A statement outside of a transaction
    gets one of its own: a page that held its locks to the end would stand in the way of a migration. Limits and statement
    are sent as one message, which PostgreSQL takes as one transaction; it costs no way there and back.
    """
    engine = connections[database]
    local = LOCAL | {"statement_timeout": f"{int(seconds * 1000)}ms"}
    limits = "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in local.items())

    def limit(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        session = engine.connection
        if session.info.transaction_status != TransactionStatus.IDLE:
            return execute(sql, params, many, context)
        cursor = context["cursor"].cursor
        if many or not isinstance(cursor, ClientCursor):  # which alone sends a message of several statements
            with engine.wrap_database_errors, nullcontext() if engine.in_atomic_block else session.transaction():
                session.execute(limits)
                return execute(sql, params, many, context)
        found = execute(f"{limits}; {sql}", params, many, context)
        while cursor.nextset():
            pass
        return found

    with engine.execute_wrapper(limit):
        yield

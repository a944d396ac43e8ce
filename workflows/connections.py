"""The engine's own connections: few, fixed, autocommit, and none that waits for ever."""

from functools import cache
from typing import Any

import psycopg
from django.db import connections

from .conf import settings

NOT_FOR_PSYCOPG = ("cursor_factory", "context", "pool", "server_side_binding", "assume_role", "isolation_level")

SESSION = {
    "idle_in_transaction_session_timeout": "10s",
    "lock_timeout": "5s",
    "statement_timeout": "30s",
    "client_connection_check_interval": "5s",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "20s",
    "jit": "off",
}
# For step bodies, unless the host has set its own: a frozen process must not keep its locks, nor a dead one its session.
BODY = {name: SESSION[name] for name in SESSION if name.startswith(("client_", "tcp_"))}
KEEPALIVES = {"keepalives": 1, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}

# Nobody's statement is at fault: the database is away, busy, or takes nothing for a while. Whoever meets it tries again.
AWAY = (psycopg.OperationalError, psycopg.InternalError, psycopg.InterfaceError)

# Every statement of the journal and the claim goes by key; a plan made while the tables were empty must not scan them.
BY_KEY = {
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "join_collapse_limit": "1",
    "plan_cache_mode": "force_generic_plan",
}


@cache
def behind_pooler() -> bool:
    """Two open sessions never share a backend, and none changes its own, unless a transaction pooler stands between.

    There a session lock means nothing, and what a session is set to would leak into other people's.
    """
    ask = "SELECT pg_backend_pid()"
    with _connect("rekindle look") as first, _connect("rekindle look") as second:
        first.prepare_threshold = second.prepare_threshold = None
        one = first.execute(ask).fetchone()
        with second.transaction():
            other = second.execute(ask).fetchone()
            again = first.execute(ask).fetchone()
    return one == other or one != again


def connect_engine(name: str, *, by_key: bool = False) -> psycopg.Connection[Any]:
    """A connection to the engine's database with the host's own parameters."""
    pooled = behind_pooler()
    connection = _connect(name)
    if pooled:
        connection.prepare_threshold = None
    else:
        configure(connection, SESSION | BY_KEY if by_key else SESSION)
    return connection


def _connect(name: str) -> psycopg.Connection[Any]:
    given = connections[settings().database].get_connection_params()
    params = {key: value for key, value in given.items() if key not in NOT_FOR_PSYCOPG}
    params |= {"application_name": name, "autocommit": True, "connect_timeout": 5, "prepare_threshold": 1}
    return psycopg.connect(**(params | KEEPALIVES))


def configure(connection: psycopg.Connection[Any], session: dict[str, str]) -> None:
    connection.execute(
        "SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) AS t(name, value)",
        [list(session), list(session.values())],
    )


def configure_look_out() -> None:
    """The connection of the thread that looks out, once: who is frozen in the middle of a look must not keep its locks."""
    engine = connections[settings().database]
    if engine.connection is None and not behind_pooler():
        engine.ensure_connection()
        configure(engine.connection, SESSION)  # type: ignore[arg-type]


def configure_body(connection: psycopg.Connection[Any]) -> None:
    """A connection that step bodies borrow, as Django opened it."""
    if behind_pooler():
        return
    idle = f"{settings().body_idle_in_transaction * 1000:.0f}ms"
    session = BODY | {"idle_in_transaction_session_timeout": idle}
    unset = "SELECT name FROM pg_settings WHERE name = ANY(%s) AND source = 'default'"
    names = [row[0] for row in connection.execute(unset, [list(session)])]
    configure(connection, {name: session[name] for name in names})

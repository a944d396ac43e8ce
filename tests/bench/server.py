"""One Postgres for all, as it comes out of `initdb`: fsync on, synchronous commit on, nothing tuned."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from project import postgres


class Server:
    def __init__(self, url: str) -> None:
        self._url = url
        self._watching: dict[str, psycopg.Connection] = {}
        for name in ("fsync", "synchronous_commit", "full_page_writes"):
            if self.ask("postgres", f"SHOW {name}") != "on":
                raise SystemExit(f"The bench wants {name} on. A figure without it says nothing.")

    @property
    def version(self) -> str:
        return str(self.ask("postgres", "SHOW server_version"))

    def url(self, database: str) -> str:
        return urlunsplit(urlsplit(self._url)._replace(path=f"/{database}"))

    def ask(self, database: str, query: str) -> object:
        """One value, over a connection kept for watching."""
        if database not in self._watching:
            self._watching[database] = psycopg.connect(self.url(database), autocommit=True)
        row = self._watching[database].execute(query).fetchone()
        return row[0] if row else None

    def create(self, database: str, template: str = "template1") -> None:
        """An empty database, whatever was there before; and no peer pays for another one's checkpoint."""
        self._let_go(database)
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')
            connection.execute(f'CREATE DATABASE "{database}" TEMPLATE "{template}"')
            connection.execute("CHECKPOINT")

    def settle(self, database: str) -> None:
        """Statistics for a new schema, and no connection that would keep it from being a template."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")

    def drop(self, database: str) -> None:
        self._let_go(database)
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')

    def close(self) -> None:
        for database in list(self._watching):
            self._let_go(database)

    def _let_go(self, database: str) -> None:
        if database in self._watching:
            self._watching.pop(database).close()


@contextmanager
def running(data: Path, given: str | None) -> Iterator[Server]:
    """The server named by the caller, or the embedded one in the bench's own directory; down again afterwards."""
    server = Server(given or postgres.ensure(data))
    try:
        yield server
    finally:
        server.close()
        if not given:
            postgres.leave(data)

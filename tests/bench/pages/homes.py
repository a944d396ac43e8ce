"""One process, two databases: whoever is entered answers as Django's default. They stay alive while they are measured."""

import time
from types import TracebackType

import psycopg
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client

from project.database import parse
from recovery import duties

from ..server import Server
from .world import Size

LOCKS = """SELECT pg_advisory_lock('rekindle_worker'::regclass::oid::int, id::int) FROM rekindle_worker WHERE ended_at IS NULL"""
HEARTBEATS = "UPDATE rekindle_worker SET heartbeat_at = now() WHERE ended_at IS NULL"
BEAT, MINUTE = 5.0, 60.0  # seconds


class Home:
    def __init__(self, server: Server, size: Size) -> None:
        self.size, self.url = size, server.url(size.database)
        self._connection = connections.create_connection("default")
        self._connection.settings_dict = connections["default"].settings_dict | parse(self.url)
        self._clients: dict[str, Client] = {}
        self._alive: psycopg.Connection | None = None
        self._beat = self._duty = 0.0

    def __enter__(self) -> "Home":
        connections["default"] = self._connection
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Whoever comes next enters its own."""

    def client(self, who: str) -> Client:
        """Somebody who is logged in."""
        if who not in self._clients:
            with self:
                self._clients[who] = Client(raise_request_exception=False, SERVER_NAME="localhost")
                self._clients[who].force_login(User.objects.get(username=who))
        return self._clients[who]

    def tend(self) -> None:
        """Workers hold their locks and beat; each minute the scheduler sweeps and counts."""
        if self._alive is None:
            self._alive = psycopg.connect(self.url, autocommit=True)
            self._alive.execute(LOCKS)
        if time.monotonic() - self._beat > BEAT:
            self._alive.execute(HEARTBEATS)
            self._beat = time.monotonic()
        if time.monotonic() - self._duty > MINUTE:
            with self:
                for name in ("sweep", "figures"):
                    duties.run(name, "scheduled task")
            self._duty = time.monotonic()

    def close(self) -> None:
        if self._alive:
            self._alive.close()
        self._connection.close()

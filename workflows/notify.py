"""Waking those who wait, after the commit, without making anybody pay for it.

NOTIFY inside a transaction halves the commit rate, so it is sent from one thread per process on a connection of its
own; what gathers while it sends is one message. The workers' poll is the truth: a lost message costs a second.
"""

import atexit
import logging
import os
import threading
import time
from collections.abc import Iterable
from typing import Any

import psycopg

from .connections import connect_engine

CHANNEL = "rekindle"
DUE = ""  # the payload that says: something is due
GATHER = 0.005  # after a message, what comes within this time goes with the next: whoever it is for is awake already

log = logging.getLogger("rekindle")


class Notifier(threading.Thread):
    """Sends what was asked for since its last message, one NOTIFY for each distinct payload."""

    def __init__(self) -> None:
        super().__init__(name="rekindle-notify", daemon=True)
        self._wanted: set[str] = set()
        self._changed = threading.Condition()
        self._idle = threading.Event()
        self._idle.set()
        self._closing = False

    def ask(self, payload: str) -> None:
        with self._changed:
            self._wanted.add(payload)
            self._idle.clear()
            self._changed.notify()

    def flush(self, seconds: float) -> None:
        self._idle.wait(seconds)

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()
        self.join(2)

    def run(self) -> None:
        connection: psycopg.Connection[Any] | None = None
        while not self._closing:
            with self._changed:
                if not self._wanted:
                    self._idle.set()
                    self._changed.wait()
                wanted, self._wanted = self._wanted, set()
            try:
                connection = connection or connect_engine("rekindle notify")
                send(connection, wanted)
            except psycopg.Error as error:
                log.debug("a wake-up was not sent, the poll will do: %s", error)
                connection = None
            time.sleep(GATHER)
        if connection:
            connection.close()


def send(connection: psycopg.Connection[Any], payloads: Iterable[str]) -> None:
    connection.execute("SELECT pg_notify(%s, payload) FROM unnest(%s::text[]) AS payload", [CHANNEL, list(payloads)])


_notifier: Notifier | None = None
_lock = threading.Lock()


def poke(payload: str = DUE) -> None:
    """Wake whoever waits for this. Call it after the commit."""
    global _notifier
    with _lock:
        if _notifier is None or not _notifier.is_alive():
            _notifier = Notifier()
            _notifier.start()
    _notifier.ask(payload)


def rest() -> None:
    """Give the connection back; the next wake-up opens another."""
    if _notifier:
        _notifier.close()


def _forget() -> None:
    global _notifier, _lock
    _notifier, _lock = None, threading.Lock()


@atexit.register
def _say_goodbye() -> None:
    if _notifier:
        _notifier.flush(0.5)


os.register_at_fork(after_in_child=_forget)

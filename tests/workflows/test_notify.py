"""Waking those who wait: after the commit, on a connection of its own, many calls in one message."""

from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection, transaction

from workflows import notify, start
from workflows.connections import connect_engine

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ear() -> Iterator[psycopg.Connection]:
    listener = connect_engine("rekindle test")
    listener.execute(f"LISTEN {notify.CHANNEL}")
    yield listener
    listener.close()


def heard(ear: psycopg.Connection) -> list[psycopg.Notify]:
    """Everything up to a mark of our own: what was sent before it has arrived before it."""
    if notify._notifier:
        notify._notifier.flush(10)
    connection.cursor().execute("SELECT pg_notify(%s, 'mark')", [notify.CHANNEL])
    found = []
    for notice in ear.notifies(timeout=10):
        if notice.payload == "mark":
            return found
        found.append(notice)
    raise AssertionError("the mark did not arrive")


def test_nobody_is_woken_before_the_commit(ear):
    """◆ NOTIFY is sent only after commit."""
    with transaction.atomic():
        start("three")
        assert notify._notifier is None or not notify._notifier._wanted
        pid = connection.connection.info.backend_pid

    assert heard(ear)
    start("three")
    assert {notice.pid for notice in heard(ear)} - {pid}  # from a session of its own: no commit waits for it


def test_what_is_rolled_back_wakes_nobody(ear):
    heard(ear)
    with transaction.atomic():
        start("three")
        transaction.set_rollback(True)

    assert heard(ear) == []


def test_what_gathers_while_a_message_is_sent_is_one_message(ear, monkeypatch):
    """◆ Coalesced per process."""
    heard(ear)
    asked = []

    def send(on, payloads):
        if not asked:
            for _ in range(100):
                notify.poke("one")
                notify.poke("other")
        asked.append(sorted(payloads))

    monkeypatch.setattr(notify, "send", send)
    notify.poke("first")
    notify._notifier.flush(10)

    assert asked == [["first"], ["one", "other"]]

"""Connections that step bodies borrow do not hold on for ever, unless the host wants them to."""

import pytest
from django.db import connection

from workflows.borrow import Borrowing
from workflows.connections import configure_body

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shown():
    borrowing = Borrowing(1, configure_body)

    def show(name):
        with borrowing.lend(), connection.cursor() as cursor:
            cursor.execute(f"SHOW {name}")
            return cursor.fetchone()[0]

    yield show
    borrowing.close()


def test_an_idle_transaction_ends_and_a_dead_client_is_noticed(shown, settings):
    """Faults: open transactions end by time-out."""
    settings.REKINDLE = settings.REKINDLE | {"BODY_IDLE_IN_TRANSACTION": 45}

    assert shown("idle_in_transaction_session_timeout") == "45s"
    assert shown("client_connection_check_interval") == "5s"


def test_what_the_host_has_set_for_its_database_holds(shown, settings):
    options = connection.settings_dict["OPTIONS"]
    settings.DATABASES["default"]["OPTIONS"] = options | {"options": "-c idle_in_transaction_session_timeout=3min"}
    try:
        assert shown("idle_in_transaction_session_timeout") == "3min"
    finally:
        settings.DATABASES["default"]["OPTIONS"] = options


def test_statements_of_bodies_may_take_their_time(shown):
    """The engine's own limits are for the engine's own statements."""
    assert (shown("statement_timeout"), shown("lock_timeout")) == ("0", "0")

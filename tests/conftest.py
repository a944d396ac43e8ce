"""The database: a real PostgreSQL of this run's own, started when the first test asks for it."""

import os
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection, connections
from django.test import TransactionTestCase
from pytest_django import DjangoDbBlocker

from project import postgres
from tests.first_rows import FirstRows
from workflows import definitions, notify


@pytest.fixture(scope="session")
def embedded_postgres() -> Iterator[str]:
    """The server. It goes, and its directory with it, when this run ends, however it ends."""
    yield postgres.ensure(settings.DATA_DIR, fsync=False, throw_away=True)
    connections.close_all()
    postgres.leave(settings.DATA_DIR)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(embedded_postgres: str) -> None:
    """pytest-django asks for this before it makes the test database."""


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Whoever commits to it leaves it as it was made. Whoever woke others holds a connection, which would keep it from being dropped."""
    with django_db_blocker.unblock():
        first_rows = FirstRows()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda self: first_rows.restore())
        yield
    notify.rest()


@pytest.fixture
def outside(transactional_db: None) -> dict[str, str]:
    """The environment in which another process sees the database of this test."""
    at = connection.settings_dict
    address = f"postgresql://{at['USER']}@/{at['NAME']}?host={quote(at['HOST'])}&port={at['PORT']}"
    return os.environ | {"DATABASE_URL": address, "DJANGO_SETTINGS_MODULE": "project.settings"}


@pytest.fixture(autouse=True)
def own_definitions() -> Iterator[None]:
    """What a test defines is gone when it ends."""
    known, duplicates = dict(definitions._known), list(definitions.duplicates)
    yield
    for name in set(definitions._known) - set(known):
        if definitions._known[name].function.__qualname__.startswith("test_"):
            del definitions._known[name]
    definitions.duplicates[:] = duplicates

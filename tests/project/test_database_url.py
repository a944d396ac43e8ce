"""DATABASE_URL means what libpq makes of it."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from project.database import parse


def test_an_ordinary_address():
    found = parse("postgresql://me:p%40ss@db.example:6543/orders")

    assert (found["USER"], found["PASSWORD"], found["HOST"]) == ("me", "p@ss", "db.example")
    assert (found["PORT"], found["NAME"]) == ("6543", "orders")


def test_a_socket_behind_the_question_mark():
    found = parse("postgresql://me@/orders?host=/run/a%20b&port=5433")

    assert (found["HOST"], found["PORT"]) == ("/run/a b", "5433")


def test_a_socket_in_the_place_of_the_host():
    assert parse("postgres://%2Frun%2Fpostgresql/orders")["HOST"] == "/run/postgresql"


def test_other_words_are_options_of_the_connection():
    assert parse("postgres://db/orders?sslmode=require")["OPTIONS"]["sslmode"] == "require"


@pytest.mark.parametrize("wrong", ["mysql://db/orders", "postgres://db/", "orders", "postgres://db:port/orders"])
def test_what_is_no_address_is_refused_with_an_example(wrong):
    with pytest.raises(ImproperlyConfigured, match="looks like postgresql://"):
        parse(wrong)

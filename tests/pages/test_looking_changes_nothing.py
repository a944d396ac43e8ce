"""No state change on GET: whatever is looked at, by whomever and in whatever way, every row is what it was."""

from itertools import product

import pytest
from django.apps import apps
from django.db import connection

from . import hostile
from .walking import HTMX, addresses, walk

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("demo")]
THEIRS = ("django_session", "django_admin_log")  # a session is renewed, whoever looks


def rows() -> dict[str, str]:
    """A fingerprint of every table, ours and the host's."""
    tables = [model._meta.db_table for model in apps.get_models(include_auto_created=True)]
    found = {}
    with connection.cursor() as cursor:
        for table in sorted(set(tables) - set(THEIRS)):
            cursor.execute(f"SELECT md5(string_agg(md5(t::text), '' ORDER BY t::text)) FROM {table} t")
            found[table] = cursor.fetchone()[0]
    return found


def test_the_fingerprint_would_notice():
    hostile.build()
    before = rows()

    with connection.cursor() as cursor:
        cursor.execute("UPDATE rekindle_policy SET paused = NOT paused WHERE name = '*'")

    assert [table for table, mark in rows().items() if mark != before[table]] == ["rekindle_policy"]


def test_whatever_is_looked_at_stays_as_it_is():
    hostile.build()
    boss = hostile.boss()
    before = rows()

    for url, answer in walk(boss):
        for each in (answer, boss.get(url, headers=HTMX), boss.head(url)):
            list(each.streaming_content) if each.streaming else None

    assert rows() == before


def test_other_methods_are_refused_and_change_nothing():
    hostile.build()
    boss = hostile.boss()
    before = rows()

    for urls in addresses(boss).values():
        for url, method in product(urls[:1], ("put", "patch", "delete", "options", "trace")):
            assert getattr(boss, method)(url).status_code == 405, url

    assert rows() == before

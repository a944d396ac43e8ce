"""What is too much is refused before it is read, and no page keeps the database busy."""

import pytest
from django.contrib.auth.models import User
from django.db import DataError, connection
from django.test import Client
from django.urls import reverse

from recovery.bounds import limited
from recovery.urls import urlpatterns
from recovery.views import door
from tests.factories import WorkflowFactory
from workflows.conf import settings
from workflows.models import Workflow

from . import hostile
from .walking import HTMX, addresses


@pytest.fixture
def boss(db):
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    return client


def limit():
    """How long the database lets a statement run just now."""
    return connection.connection.execute("SHOW statement_timeout").fetchone()[0]


def asked(execute, context, name="statement_timeout"):
    """The same, in the place of a statement of the page."""
    execute("SELECT current_setting(%s)", [name], False, context)
    return context["cursor"].fetchone()[0]


def ask(client, **typed):
    workflow = WorkflowFactory(failed=True, variables={"data": {}})
    form = {f"seen-{workflow.pk}": workflow.fence, "reason": "x"} | typed
    answer = client.post(reverse("rekindle:ask", args=[workflow.pk, "recover"]), form)
    assert Workflow.objects.get(pk=workflow.pk).status == "failed"
    return answer


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ('{"a": ' * 5_000 + "1" + "}" * 5_000, "nested too deeply"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": 1, "a": 2}', "twice"),
        ("NaN", "not JSON"),
        ("1e400", "not JSON"),
        ('"\\u0000"', "NUL"),
        ('"\\ud800"', "surrogate"),
        ('{"a": "' + "x" * 1_100_000 + '"}', "bytes"),
    ],
    ids=["deep", "very deep", "keys twice", "NaN", "1e400", "NUL", "half a pair", "large"],
)
def test_what_cannot_be_stored_is_refused_in_a_sentence(boss, typed, said):
    answer = ask(boss, **{"v:data": typed})

    assert answer.status_code == 409
    assert said in answer.content.decode()


def test_a_body_that_is_too_large_is_not_read(boss):
    answer = ask(boss, **{"v:data": "x" * 4_000_000})

    assert answer.status_code == 400


def test_a_body_with_too_many_fields_is_not_read(boss):
    answer = ask(boss, **{f"v:{n}": "1" for n in range(2_000)})

    assert answer.status_code == 400


@pytest.mark.parametrize(
    "query",
    [
        {"ids": ".".join(["0199aaaa-0000-7000-8000-000000000000"] * 5_000)},
        {"q": "x" * 100_000},
        {"q": "name:a* " * 5_000},
        {"step": "." + "x." * 50_000 + ":1"},
        {"before": "9" * 5_000},
        {"from": "9" * 5_000},
        {"actor": "x" * 100_000},
    ],
    ids=lambda query: next(iter(query)),
)
def test_an_address_of_any_length_is_answered(demo, boss, query):
    hostile.build()

    for urls in addresses(boss).values():
        for url in urls[:1]:
            for headers in ({}, HTMX):
                assert boss.get(url, query, headers=headers).status_code < 500, url


@pytest.mark.django_db(transaction=True)
def test_every_query_of_a_page_has_a_time_limit_and_the_connection_none_afterwards(demo, settings):
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
    hostile.build()
    boss = Client()
    boss.force_login(User.objects.create_superuser("boss"))
    limits = []

    def watch(execute, sql, params, many, context):
        if "rekindle_" in sql and "auth_" not in sql:
            limits.append(asked(execute, context))
        return execute(sql, params, many, context)

    for name, urls in addresses(boss).items():
        limits.clear()
        for url in urls[:1]:
            with connection.execute_wrapper(watch):
                answer = boss.get(url)
                list(answer.streaming_content) if answer.streaming else None
        assert set(limits) <= {f"{door.LONGEST:g}s"}, name
        assert limits or name in ("healthz", "rail") or answer.status_code != 200, name
        assert limit() == "0"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("binds", [False, True], ids=["by the client", "by the server"])
def test_the_limit_holds_for_one_statement_however_its_parameters_are_bound(monkeypatch, binds):
    monkeypatch.setattr(connection.features, "uses_server_side_binding", binds)
    connection.close()

    with limited("default", 7), connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('statement_timeout'), current_setting('max_parallel_workers_per_gather'), %s", ["x"]
        )
        during, left = cursor.fetchone(), limit()
        assert cursor.nextset() is None
    connection.close()

    assert (during, left) == (("7s", "0", "x"), "0")


@pytest.mark.django_db(transaction=True)
def test_a_statement_that_is_refused_leaves_no_limit_behind():
    with limited("default", 7), connection.cursor() as cursor:
        with pytest.raises(DataError):
            cursor.execute("SELECT 1 / %s", [0])
        left = limit()
        cursor.execute("SELECT %s", [1])
        assert cursor.fetchone() == (1,)

    assert left == "0"


@pytest.mark.django_db(transaction=True)
def test_an_act_has_the_limit_too_and_leaves_none_behind():
    workflow = WorkflowFactory()
    boss = Client()
    boss.force_login(User.objects.create_superuser("boss"))
    limits = []

    def watch(execute, sql, params, many, context):
        if "UPDATE" in sql and "rekindle_workflow" in sql:
            limits.append(asked(execute, context))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        boss.post(reverse("rekindle:ask", args=[workflow.pk, "cancel"]), {f"seen-{workflow.pk}": workflow.fence})

    assert Workflow.objects.get().status == "cancelled"
    assert set(limits) == {f"{door.LONGEST:g}s"}
    assert limit() == "0"


@pytest.mark.django_db(transaction=True)
def test_a_web_server_that_is_frozen_in_an_act_does_not_keep_its_locks():
    """Faults: SIGSTOP or VM pause inside an open transaction: whoever holds the workflow waits for its row."""
    workflow = WorkflowFactory()
    boss = Client()
    boss.force_login(User.objects.create_superuser("boss"))
    limits = []

    def watch(execute, sql, params, many, context):
        if "UPDATE" in sql and "rekindle_workflow" in sql:
            limits.append(asked(execute, context, "idle_in_transaction_session_timeout"))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        boss.post(reverse("rekindle:ask", args=[workflow.pk, "cancel"]), {f"seen-{workflow.pk}": workflow.fence})

    assert set(limits) == {"10s"}
    assert connection.connection.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("0",)


@pytest.mark.django_db(transaction=True)
def test_a_page_that_takes_too_long_says_so_politely(monkeypatch):
    """As when the database is away: the page comes, the data later."""
    monkeypatch.setattr(door, "LONGEST", 0.05)
    boss = Client()
    boss.force_login(User.objects.create_superuser("boss"))

    def slow(execute, sql, params, many, context):
        if "rekindle_" in sql:
            sql, params = "SELECT pg_sleep(5)", None
        return execute(sql, params, many, context)

    with connection.execute_wrapper(slow):
        answer = boss.get("/workflows/")

    assert answer.status_code == 503


def test_no_view_runs_in_a_transaction_of_the_hosts():
    """ATOMIC_REQUESTS is for its own."""
    for pattern in urlpatterns:
        assert settings().database in getattr(pattern.callback, "_non_atomic_requests", ()), pattern.name

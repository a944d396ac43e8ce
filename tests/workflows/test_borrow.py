"""Bodies borrow connections: the fewest that will do, and never one that somebody else is using."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, OperationalError, connection, connections, transaction
from django.db.backends.signals import connection_created
from django.db.models import F

from workflows import borrow
from workflows.borrow import Borrowing
from workflows.errors import Interrupted

pytestmark = pytest.mark.django_db(transaction=True)

Make = Callable[..., Borrowing]


@pytest.fixture
def make(transactional_db: None) -> Iterator[Make]:
    Group.objects.all().delete()  # migrate makes three
    made: list[Borrowing] = []

    def make(size: int = 1, **kwargs: Any) -> Borrowing:
        made.append(Borrowing(size, **kwargs))
        return made[-1]

    yield make
    for borrowing in made:
        borrowing.close()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(64) as pool:
        yield pool


def pool(borrowing: Borrowing) -> borrow.Pool:
    return borrowing.borrowers["default"].lender


def free(borrowing: Borrowing) -> int:
    return len(pool(borrowing).free)


def body(borrowing: Borrowing, work: Callable[[], Any]) -> Any:
    with borrowing.lend():
        return work()


def backend() -> int:
    return int(ask("SELECT pg_backend_pid()"))


def ask(query: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone()[0]


def queued(borrowing: Borrowing, count: int = 1) -> None:
    """Until so many wait for a connection."""
    while len(pool(borrowing).queue) < count:
        threading.Event().wait(0.001)


def administrator() -> psycopg.Connection[Any]:
    at = connections.settings["default"]
    return psycopg.connect(host=at["HOST"], port=at["PORT"], user=at["USER"], dbname="postgres", autocommit=True)


def kill(pid: int) -> None:
    """When this returns the backend is gone, so that its goodbye has been sent."""
    with administrator() as admin:
        admin.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])


def test_sixty_four_bodies_share_four_connections(make: Make, threads: ThreadPoolExecutor) -> None:
    """With Django's OPTIONS={"pool": {"max_size": 4, "timeout": 0.1}} 60 of these fail with PoolTimeout."""
    Group.objects.create(name="sum", id=1_000_000)
    opened: list[object] = []
    borrowing = make(4, configure=opened.append)
    all_here = threading.Barrier(64)

    def work(number: int) -> None:
        all_here.wait()
        group = Group.objects.create(name=f"group {number}")
        with transaction.atomic():
            Group.objects.filter(pk=group.pk).update(name=f"{number}")
            ask("SELECT 1 FROM pg_sleep(0.005)")
        assert Group.objects.get(pk=group.pk).name == f"{number}"
        with transaction.atomic():
            Group.objects.select_for_update().get(name="sum")
            Group.objects.filter(name="sum").update(id=F("id") + 1)

    for done in [threads.submit(body, borrowing, lambda number=number: work(number)) for number in range(64)]:
        done.result()

    assert Group.objects.get(name="sum").pk == 1_000_064
    assert len(opened) == 4
    assert free(borrowing) == 4


def test_outside_atomic_a_connection_goes_back_after_each_query(make: Make, threads: ThreadPoolExecutor) -> None:
    borrowing = make(1)

    with borrowing.lend():
        Group.objects.create(name="one")

        assert free(borrowing) == 1
        assert threads.submit(body, borrowing, Group.objects.count).result() == 1
        assert Group.objects.count() == 1


def test_inside_atomic_it_is_kept_until_the_outermost_block_ends(make: Make) -> None:
    borrowing = make(2)

    with borrowing.lend():
        with transaction.atomic():
            assert free(borrowing) == 1
            pid = backend()
            with transaction.atomic():
                assert backend() == pid
            assert free(borrowing) == 1

        assert free(borrowing) == 2


def test_a_savepoint_undoes_only_its_own(make: Make) -> None:
    with make().lend(), transaction.atomic():
        Group.objects.create(name="outer")
        with pytest.raises(IntegrityError), transaction.atomic():
            Group.objects.create(name="outer")
        Group.objects.create(name="after")

    assert set(Group.objects.values_list("name", flat=True)) == {"outer", "after"}


def test_a_block_that_fails_is_rolled_back_and_its_connection_serves_the_next(make: Make) -> None:
    borrowing = make(1)

    @transaction.atomic
    def twice() -> None:
        Group.objects.create(name="twice")
        Group.objects.create(name="twice")

    with borrowing.lend():
        pid = backend()
        with pytest.raises(IntegrityError):
            twice()

        assert not Group.objects.exists()
        assert backend() == pid


def test_on_commit_runs_when_the_connection_has_gone_back(make: Make) -> None:
    borrowing = make(1)
    seen: list[tuple[int, int]] = []

    with borrowing.lend(), transaction.atomic():
        Group.objects.create(name="kept")
        transaction.on_commit(lambda: seen.append((free(borrowing), Group.objects.count())))

    assert seen == [(1, 1)]


def test_a_cursor_used_twice_never_touches_a_connection_that_went_to_another(
    make: Make, threads: ThreadPoolExecutor
) -> None:
    borrowing = make(2)
    taken, done = threading.Event(), threading.Event()

    def other() -> int:
        with transaction.atomic():
            pid = backend()
            taken.set()
            done.wait()
            return pid

    with borrowing.lend(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid() UNION ALL SELECT 0 ORDER BY 1 DESC")
        theirs = threads.submit(body, borrowing, other)
        taken.wait()
        first, nothing = cursor.fetchall()
        cursor.execute("SELECT pg_backend_pid()")
        [second] = cursor
        done.set()

    assert nothing == (0,)
    assert first == (theirs.result(),)
    assert second != first


def test_an_iterator_keeps_its_connection_for_as_long_as_it_is_read(make: Make) -> None:
    Group.objects.bulk_create(Group(name=f"{number}") for number in range(10))
    borrowing = make(1)

    with borrowing.lend():
        for group in Group.objects.order_by("pk").iterator(chunk_size=2):
            assert free(borrowing) == 0
            group.name += "!"
            with transaction.atomic():
                group.save()

        assert free(borrowing) == 1
        assert Group.objects.filter(name__endswith="!").count() == 10


def test_an_iterator_left_early_gives_its_connection_back(make: Make) -> None:
    Group.objects.bulk_create(Group(name=f"{number}") for number in range(10))
    borrowing = make(1)

    with borrowing.lend():
        for _ in Group.objects.iterator(chunk_size=2):
            break

        assert free(borrowing) == 1
        assert ask("SELECT count(*) FROM pg_cursors") == 0


def test_an_iterator_left_to_the_garbage_collector_is_closed_when_the_statement_has_ended(make: Make) -> None:
    """psycopg's lock is not re-entrant: closed in the middle, the thread would wait for itself."""
    Group.objects.bulk_create(Group(name=f"{number}") for number in range(10))
    borrowing = make(1)

    with borrowing.lend():
        iterator = Group.objects.iterator(chunk_size=2)
        next(iterator)
        with connection.connection.lock:
            del iterator
        assert free(borrowing) == 0
        Group.objects.count()

        assert free(borrowing) == 1
        assert ask("SELECT count(*) FROM pg_cursors") == 0


def test_an_iterator_left_in_a_failed_block_leaves_nothing_behind(make: Make) -> None:
    Group.objects.bulk_create(Group(name=f"{number}") for number in range(10))
    borrowing = make(1)

    @transaction.atomic
    def fail(iterator: Iterator[Group]) -> None:
        with pytest.raises(IntegrityError):
            Group.objects.create(name="1")
        iterator.close()  # type: ignore[attr-defined]

    with borrowing.lend():
        iterator = Group.objects.iterator(chunk_size=2)
        next(iterator)
        fail(iterator)
        Group.objects.count()

        assert free(borrowing) == 1
        assert ask("SELECT count(*) FROM pg_cursors") == 0


def test_psycopgs_own_things_keep_the_connection_until_the_cursor_is_closed(make: Make) -> None:
    borrowing = make(1)

    with borrowing.lend():
        with connection.cursor() as cursor:
            with cursor.copy("COPY auth_group (name) FROM STDIN") as copy:
                copy.write_row(["copied"])
            assert cursor.rowcount == 1
        assert free(borrowing) == 1

        with connection.cursor() as cursor:
            assert list(cursor.stream("SELECT name FROM auth_group")) == [("copied",)]
        assert free(borrowing) == 1

        with connection.cursor() as cursor, cursor.connection.transaction():
            cursor.execute("DELETE FROM auth_group")
            assert free(borrowing) == 0
        assert free(borrowing) == 1

    assert not Group.objects.exists()


def test_looking_at_the_raw_connection_does_not_lose_a_result(make: Make, threads: ThreadPoolExecutor) -> None:
    borrowing = make(2)

    with borrowing.lend(), connection.cursor() as cursor:
        cursor.execute("SELECT 42")
        theirs = pool(borrowing).take()

        assert cursor.connection is not theirs.connection
        assert cursor.fetchone() == (42,)
        pool(borrowing).put(theirs)


def test_many_rows_go_through_executemany(make: Make) -> None:
    with make().lend(), connection.cursor() as cursor:
        cursor.executemany("INSERT INTO auth_group (name) VALUES (%s)", [["a"], ["b"]])

        assert cursor.rowcount == 2
        assert Group.objects.count() == 2


def test_a_transaction_begun_by_hand_keeps_its_connection(make: Make) -> None:
    borrowing = make(1)

    with borrowing.lend(), connection.cursor() as cursor:
        cursor.execute("BEGIN")
        Group.objects.create(name="undone")
        assert free(borrowing) == 0
        cursor.execute("ROLLBACK")

        assert free(borrowing) == 1
        assert not Group.objects.exists()


def test_a_setting_made_by_one_body_is_never_seen_by_another(make: Make) -> None:
    borrowing = make(1)

    with borrowing.lend():
        before = ask("SHOW work_mem")
        with connection.cursor() as cursor:
            cursor.execute("SET work_mem = '77MB'")
        assert ask("SHOW work_mem") == "77MB"
        with transaction.atomic():
            assert ask("SHOW work_mem") == "77MB"

    with borrowing.lend():
        assert ask("SHOW work_mem") == before


def test_a_setting_local_to_a_transaction_costs_no_connection(make: Make) -> None:
    borrowing = make(1)

    with borrowing.lend():
        pid = backend()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL work_mem = '77MB'")

        assert free(borrowing) == 1
        assert backend() == pid


def test_who_asks_for_the_connection_itself_has_it_until_the_body_ends(make: Make) -> None:
    borrowing = make(1)

    with borrowing.lend():
        connection.ensure_connection()
        pid = connection.connection.info.backend_pid
        assert backend() == pid
        assert free(borrowing) == 0

    with borrowing.lend():
        assert backend() != pid


def test_what_a_body_leaves_open_is_rolled_back(make: Make) -> None:
    borrowing = make(1)

    with borrowing.lend():
        transaction.set_autocommit(False)
        Group.objects.create(name="manual")
    with borrowing.lend():
        transaction.atomic().__enter__()
        Group.objects.create(name="open")

    assert free(borrowing) == 1
    assert body(borrowing, Group.objects.count) == 0


def test_manual_transactions_give_back_when_autocommit_is_on_again(make: Make) -> None:
    borrowing = make(1)

    with borrowing.lend():
        transaction.set_autocommit(False)
        Group.objects.create(name="manual")
        assert free(borrowing) == 0
        transaction.commit()
        transaction.set_autocommit(True)

        assert free(borrowing) == 1
        assert Group.objects.count() == 1


def test_a_connection_that_died_idle_is_replaced_in_silence(make: Make) -> None:
    borrowing = make(1)
    with borrowing.lend():
        pid = backend()
        kill(pid)

        assert backend() != pid

        pid = backend()
        kill(pid)
        with transaction.atomic():
            assert backend() != pid


def test_a_connection_that_dies_in_use_fails_its_block_and_no_other(make: Make) -> None:
    borrowing = make(1)

    @transaction.atomic
    def cut_off() -> None:
        Group.objects.create(name="lost")
        kill(backend())
        Group.objects.create(name="never")

    with borrowing.lend():
        with pytest.raises(OperationalError):
            cut_off()

        assert free(borrowing) == 1
        assert transaction.get_autocommit()
        assert not Group.objects.exists()


def test_a_body_may_close_its_connection_in_the_middle_of_a_block(make: Make) -> None:
    borrowing = make(1)

    with borrowing.lend():
        with transaction.atomic():
            Group.objects.create(name="lost")
            connections.close_all()
            assert free(borrowing) == 1

        Group.objects.create(name="kept")

    assert Group.objects.get().name == "kept"


def test_a_database_that_is_away_is_waited_for(make: Make, threads: ThreadPoolExecutor, monkeypatch: Any) -> None:
    """Postgres restarted: nothing was sent, so waiting does nothing twice."""
    borrowing, name = make(1), connections.settings["default"]["NAME"]
    pid = body(borrowing, backend)
    tried = threading.Event()
    ordinary = borrow.Pool._connect

    def connect(self: borrow.Pool) -> Any:
        try:
            return ordinary(self)
        finally:
            tried.set()

    monkeypatch.setattr(borrow.Pool, "_connect", connect)
    with administrator() as admin:
        admin.execute("UPDATE pg_database SET datallowconn = false WHERE datname = %s", [name])
        try:
            kill(pid)
            waiting = threads.submit(body, borrowing, backend)
            tried.wait()
            assert not waiting.done()
        finally:
            admin.execute("UPDATE pg_database SET datallowconn = true WHERE datname = %s", [name])

    assert waiting.result() != pid


def test_who_waits_longest_is_next(make: Make, threads: ThreadPoolExecutor) -> None:
    borrowing = make(1)
    order: list[int] = []
    waiting: list[Future[None]] = []

    with borrowing.lend(), transaction.atomic():
        for number in range(5):
            waiting.append(threads.submit(body, borrowing, lambda number=number: order.append((backend(), number)[1])))
            queued(borrowing, number + 1)
    for done in waiting:
        done.result()

    assert order == [0, 1, 2, 3, 4]


def test_who_waits_while_the_process_stops_gives_up(make: Make, threads: ThreadPoolExecutor) -> None:
    stopping = threading.Event()
    borrowing = make(1, stopping=stopping)

    with borrowing.lend(), transaction.atomic():
        waiting = threads.submit(body, borrowing, Group.objects.count)
        queued(borrowing)
        stopping.set()
        with pytest.raises(Interrupted, match="stopping"):
            waiting.result()

        assert Group.objects.count() == 0
    assert free(borrowing) == 1


def test_a_connection_is_made_ready_once(make: Make) -> None:
    """Receivers of Django's signal may go through `connections`, as django.contrib.postgres does."""
    made: list[object] = []

    def ready(connection: Any, **_: object) -> None:
        made.append(connection)
        with connections[connection.alias].cursor() as cursor:
            cursor.execute("SET work_mem = '66MB'")

    connection_created.connect(ready, sender=type(connections.create_connection("default")))
    try:
        borrowing = make(1, configure=lambda raw: raw.execute("SET lock_timeout = '5s'"))
        with borrowing.lend():
            for _ in range(3):
                assert (ask("SHOW work_mem"), ask("SHOW lock_timeout")) == ("66MB", "5s")
    finally:
        connection_created.disconnect(ready, sender=type(connections.create_connection("default")))

    assert len(made) == 1
    assert free(borrowing) == 1


def test_queries_are_logged_and_wrapped_as_ever(make: Make) -> None:
    borrowing = make(1)
    seen: list[str] = []

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        seen.append(sql)
        return execute(sql, params, many, context)

    with borrowing.lend(), connection.execute_wrapper(wrapper):
        connection.force_debug_cursor = True
        Group.objects.filter(name="logged").exists()

        assert "'logged'" in connection.queries[-1]["sql"]
        assert len(seen) == 1
        assert connection.pg_version >= 150000
        assert free(borrowing) == 1


def test_the_hosts_own_pool_stays_out_of_it(make: Make, monkeypatch: Any) -> None:
    at = connections.settings["default"]
    monkeypatch.setitem(at, "OPTIONS", at["OPTIONS"] | {"pool": {"min_size": 1, "max_size": 1, "timeout": 0.1}})
    monkeypatch.setitem(at, "CONN_MAX_AGE", 0)
    borrowing = make(2)

    with borrowing.lend():
        pid = backend()
        assert backend() == pid
        assert connection.pool is None


def test_an_old_connection_is_replaced(make: Make, monkeypatch: Any) -> None:
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 60)
    borrowing = make(1)

    with borrowing.lend():
        pid = backend()
        pool(borrowing).free[0].close_at -= 60

        assert backend() != pid


def test_a_thread_gets_its_own_connections_back(make: Make) -> None:
    ordinary = connections["default"]
    borrowing = make(1)

    with borrowing.lend():
        borrowed = connections["default"]
        assert borrowed is not ordinary
        with borrowing.lend():
            assert connections["default"] is borrowed

    assert connections["default"] is ordinary


def test_other_databases_stay_as_django_has_them(make: Make, monkeypatch: Any) -> None:
    engines = {"lite": "django.db.backends.sqlite3", "manual": "django.db.backends.postgresql"}
    for alias, engine in engines.items():
        settings = connections.settings["default"] | {"ENGINE": engine, "AUTOCOMMIT": alias != "manual"}
        monkeypatch.setitem(connections.settings, alias, settings)

    assert set(make(1).borrowers) == {"default"}

"""The threads of a worker: none is waited for in vain, and what does not come back is counted."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.db import connection

from workflows.borrow import Borrowing
from workflows.crew import ThreadCrew, take_turns


@contextmanager
def nothing():
    yield lambda: None


@pytest.fixture
def gate():
    gate = threading.Event()
    yield gate
    gate.set()


def test_several_lost_bodies_of_one_workflow_are_several():
    crew = ThreadCrew(1, nothing)
    bodies = [threading.Event(), threading.Event()]

    for body in bodies:
        crew.lost(body)
        crew.lost(body)
    assert crew.count_lost() == 2

    crew.returned(bodies[0])
    assert (crew.count_lost(), crew.count_lost(at_least=60)) == (1, 0)


def test_a_body_that_returns_just_as_it_is_given_up_is_not_lost():
    crew = ThreadCrew(1, nothing)
    body = threading.Event()
    crew.returned(body)

    crew.lost(body)

    assert crew.count_lost() == 0


def test_helpers_that_are_all_busy_keep_no_workflow_from_its_thread(gate):
    """I11: a claimed workflow always runs; branches find no helper and run on the thread that waits for them."""
    crew = ThreadCrew(2, nothing)
    assert [crew.offer(gate.wait) for _ in range(3)] == [True, True, False]
    ran = threading.Event()

    crew.hire(ran.set)

    assert ran.wait(30)


def test_a_helper_that_is_done_helps_again(gate):
    crew = ThreadCrew(1, nothing)
    crew.offer(lambda: None)

    while not crew.offer(gate.wait):
        pass

    assert not crew.offer(gate.wait)


@pytest.mark.django_db(transaction=True)
def test_what_a_body_keeps_of_the_shared_connections_is_taken_when_it_ends(gate):
    """Design, connections: eight bodies that each said SET would otherwise starve all others for good."""
    borrowing = Borrowing(1)
    crew = ThreadCrew(0, borrowing.lend)
    answers = []
    done = threading.Event()

    def keeps() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = '1min'")

    def asks() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            answers.append(cursor.fetchone()[0])
        done.set()

    crew.hire(keeps)
    crew.hire(asks)

    assert done.wait(30)
    assert answers == ["0"]
    borrowing.close()


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="only Linux knows such turns")
@pytest.mark.parametrize(("chosen", "then"), [("SCHED_OTHER", "SCHED_BATCH"), ("SCHED_IDLE", "SCHED_IDLE")])
def test_threads_take_turns_unless_the_machines_owner_chose_otherwise(chosen, then):
    """The wish holds for the threads that are started after it, which is where bodies run."""

    def wish() -> int:
        os.sched_setscheduler(0, getattr(os, chosen), os.sched_param(0))
        take_turns()
        with ThreadPoolExecutor(1) as started:
            return started.submit(os.sched_getscheduler, 0).result()

    with ThreadPoolExecutor(1) as apart:
        assert apart.submit(wish).result() == getattr(os, then)

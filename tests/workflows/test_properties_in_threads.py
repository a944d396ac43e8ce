"""The same random programs on the real group commit: several at once, branches on threads, batches and trouble."""

import threading
from collections.abc import Iterator

import psycopg
import pytest
from django.db import connections
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workflows import journal as journals
from workflows.borrow import Borrowing
from workflows.crew import ThreadCrew
from workflows.executing import execute
from workflows.held import Held
from workflows.models import Worker
from workflows.takeover import end_worker, take_over

from .hands import hands
from .invariants import check, ended
from .programs import Program, expected, has_ticket, ledger, programs, variables
from .test_properties import ENOUGH, Scene

pytestmark = pytest.mark.django_db(transaction=True)

actions = st.lists(
    st.tuples(st.sampled_from(["zombie", "unheard", "never sent", "hand back", "nothing"]), st.integers(1, 6)),
    min_size=1,
    max_size=4,
)


@pytest.fixture(scope="module")
def crew() -> Iterator[ThreadCrew]:
    borrowing = Borrowing(3)  # fewer connections than bodies
    yield ThreadCrew(9, borrowing.lend)
    borrowing.close()


class Company:
    """Several workflows in the hands of one worker after another."""

    def __init__(self, crew: ThreadCrew, many: list[Program]) -> None:
        self.crew = crew
        self.scenes = [Scene(program, lazy=False) for program in many]

    def shift(self, what: str, at: int) -> None:
        """One worker claims what is due and runs it; at its n-th commit something happens."""
        before = set().union(*(ended(scene.pk) for scene in self.scenes))
        began = len(ledger.begun)
        with hands() as claimer:
            claimed = claimer.claim(len(self.scenes))
            commit, left, apply = claimer.journal._commit, [at], journals.apply

            def struck(asked: journals.Asked) -> None:
                left[0] -= 1
                if left[0] == 0:
                    strike(what, claimed, claimer.worker)
                commit(asked)

            def broken(cursor: psycopg.Cursor, worker: int, asked: journals.Asked) -> journals.Applied:
                if left[0] != 0 or what not in ("unheard", "never sent"):
                    return apply(cursor, worker, asked)
                left[0] = -1
                if what == "unheard":
                    apply(cursor, worker, asked)
                cursor.connection.close()
                raise psycopg.OperationalError("the line went dead")

            claimer.journal._commit = struck
            journals.apply = broken
            try:
                self._run(claimed)
            finally:
                journals.apply = apply
        end_worker(Worker.objects.get(pk=claimer.worker), "died")
        take_over([claimer.worker], detected_by="worker")
        again = before & set(ledger.begun[began:])
        assert not again, f"I2: steps whose end was stored ran again: {again}"

    def _run(self, claimed: list[Held]) -> None:
        over = threading.Semaphore(0)

        def work(held: Held) -> None:
            try:
                execute(held, self.crew)
            finally:
                over.release()

        for held in claimed:
            self.crew.hire(lambda held=held: work(held))
        for _ in claimed:
            assert over.acquire(timeout=30), "a run does not come back"

    def finish(self) -> None:
        for _ in range(ENOUGH):
            alive = False
            for scene in self.scenes:
                workflow = check(scene.pk)
                if workflow.status == "completed":
                    continue
                alive = True
                if workflow.is_finished:
                    scene.act("revive")
                elif workflow.wake_at is None:
                    scene.act("answer")
                    scene.act("signal")
                scene.rehearsal._let_time_pass()
            if not alive:
                return
            self.shift("nothing", 0)
        raise AssertionError("I1: not all of them end")


def strike(what: str, claimed: list[Held], worker: int) -> None:
    if what == "zombie":
        end_worker(Worker.objects.get(pk=worker), "silent")
        take_over([worker], detected_by="worker")
        connections.close_all()  # this is the journal's thread
    elif what == "hand back":
        for held in claimed:
            held.stopping = True


def perform(crew: ThreadCrew, many: list[Program], acts: list[tuple[str, int]]) -> None:
    company = Company(crew, many)
    for what, at in acts:
        company.shift(what, at)
    company.finish()

    for scene in company.scenes:
        done = check(scene.pk)
        assert done.output == expected(scene.program)
        if not has_ticket(scene.program):
            assert done.variables == variables(scene.program)
    results: dict[str, object] = {}
    for key, result in ledger.went:
        assert results.setdefault(key, result) == result, f"I2: {key} went on with another result"


QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=8, derandomize=True, deadline=None, database=None, suppress_health_check=QUIET)
@given(st.lists(programs(most=3), min_size=2, max_size=4), actions)
def test_side_by_side_on_one_journal_they_end_as_if_nothing_had_happened(crew, many, acts):
    """I1, I2, I3, I5, I6."""
    perform(crew, many, acts)


@pytest.mark.proof
@settings(max_examples=100, deadline=None, database=None, suppress_health_check=QUIET, print_blob=True)
@given(st.lists(programs(), min_size=2, max_size=6), actions)
def test_many_more_side_by_side_end_as_if_nothing_had_happened(crew, many, acts):
    """I1, I2, I3, I5, I6."""
    perform(crew, many, acts)

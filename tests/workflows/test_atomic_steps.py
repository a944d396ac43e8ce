"""Atomic steps: effects and record commit together, after all that came before them on their path."""

import threading

import pytest
from django.db import OperationalError, connection, connections

from workflows import Run, error_pend, proceed, start, workflow
from workflows import atomic as atomic_steps
from workflows.executing import execute
from workflows.models import Policy, Step, Workflow
from workflows.paths import Alone
from workflows.retry import CONFLICTS
from workflows.testing import rehearse

from . import flows
from .hands import hands

acts: dict[str, object] = {}


def effect(name: str) -> str:
    """What a host's own ORM write would be."""
    flows.calls.append(name)
    Policy.objects.create(name=name)
    return name


@workflow("sets_and_saves")
def sets_and_saves(run: Run) -> str:
    run.set(x=1)
    return str(run.step(effect, "saved", atomic=True))


@workflow("saves_lazily", persistence="lazy")
def saves_lazily(run: Run) -> object:
    run.step(flows.note, "first", name="first")
    run.step(effect, "saved", atomic=True)
    return run.step(lambda: acts["act"](run.id), name="act")


@workflow("saves_later")
def saves_later(run: Run) -> object:
    def body() -> object:
        if run.attempt == 1:
            return error_pend("retry_queue", "not yet")
        return effect("saved")

    return run.step(body, name="body", atomic=True)


@workflow("saves_and_jumps")
def saves_and_jumps(run: Run, atomic: bool = True) -> None:
    def body() -> object:
        effect("saved")
        return proceed("saved", ticket="out")

    run.parallel(
        "work", desk=lambda run: run.pend("desk"), alarm=lambda run: run.step(body, name="body", atomic=atomic)
    )


@saves_and_jumps.ticket("out")
def jumped(run: Run, atomic: bool = True) -> str:
    return str(run.step(flows.note, "jumped", name="land"))


@pytest.fixture(autouse=True)
def ledger():
    flows.calls.clear()
    return flows.calls


@pytest.mark.django_db(transaction=True)
def test_what_comes_before_an_atomic_step_is_durable_before_it():
    """I6: its commit overtakes the journal, and a crash after it must not leave a gap in the path."""
    start("sets_and_saves")
    with hands() as claimer:
        held = claimer.claim(1)[0]
        claimer.journal._delay = 3600  # what nobody waits for is never written by itself
        seen = []
        apply_last = atomic_steps._apply_last

        def look(*given):
            seen.extend(Step.objects.filter(kind="value").values_list("status", flat=True))
            return apply_last(*given)

        atomic_steps._apply_last = look
        try:
            assert execute(held, Alone()) == "completed"
        finally:
            atomic_steps._apply_last = apply_last
    assert seen == ["done"]


@pytest.mark.django_db
def test_a_lazy_workflow_writes_what_it_has_at_an_atomic_step(ledger):
    """Lazy writes at atomic steps, too: a crash after one repeats nothing before it."""
    positions = []
    acts["act"] = lambda pk: positions.extend(Step.objects.filter(workflow=pk).values_list("name", "status"))

    rehearse("saves_lazily").to_end()

    assert positions == [("first", "done"), ("effect", "done")]


@pytest.mark.django_db
def test_an_atomic_step_in_a_retry_basket_comes_back_by_itself(ledger):
    """I1: the row's alarm is the step's."""
    assert rehearse("saves_later").to_end().output == "saved"


@pytest.mark.django_db
@pytest.mark.parametrize("atomic", [True, False])
@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_step_that_answers_with_a_ticket_jumps_also_after_a_crash(ledger, atomic, after):
    """The ticket is stored with the answer that raised it."""
    rehearsal = rehearse("saves_and_jumps", atomic=atomic)
    rehearsal.crash_after(after)

    done = rehearsal.to_end()

    assert (done.status, done.output) == ("completed", "jumped")
    assert ledger == ["saved", "jumped"]
    assert not Step.objects.filter(workflow=done, status__in=["waiting", "open"]).exists()


@pytest.mark.django_db(transaction=True)
def test_an_atomic_step_of_a_dropped_path_rolls_back(ledger):
    """◆ A ticket raises the fence, so dropped paths cannot write: the whole transaction goes."""

    class Threads(Alone):
        def offer(self, work):
            threading.Thread(target=lambda: (work(), connections.close_all()), daemon=True).start()
            return True

    saving, jumped_already = threading.Event(), threading.Event()

    @workflow("dropped_in_the_act")
    def dropped_in_the_act(run: Run) -> None:
        def save() -> None:
            effect("saved")
            saving.set()
            jumped_already.wait(10)

        def alarm(run: Run) -> None:
            run.step(saving.wait, 10, name="wait")
            run.ticket("out")

        run.parallel("work", save=lambda run: run.step(save, atomic=True), alarm=alarm)

    @dropped_in_the_act.ticket("out")
    def out(run: Run) -> str:
        run.step(jumped_already.set, name="land")
        run.step(threading.Event().wait, 0.1, name="linger")
        return "out"

    start("dropped_in_the_act")
    with hands() as claimer:
        assert execute(claimer.claim(1)[0], Threads()) == "completed"

    assert Workflow.objects.get().output == "out"
    assert not Policy.objects.exists()
    assert Step.objects.get(name="save").status == "dropped"


@pytest.mark.django_db(transaction=True)
def test_a_commit_of_which_nobody_heard_does_not_happen_twice(ledger):
    """I2, S3-125, S3-134, "committed, but nobody heard it": found by a locking read, and an ended step is never overwritten."""
    start("sets_and_saves")
    with hands() as claimer:
        held = claimer.claim(1)[0]
        commit, recorded = connection._commit, atomic_steps._recorded
        cut = [1]

        def cut_after_commit():
            commit()
            if cut and ledger:
                cut.pop()
                raise OperationalError("the line went dead")

        connection._commit = cut_after_commit
        atomic_steps._recorded = lambda *given: None  # and the database stays away for a while
        try:
            assert execute(held, Alone()) == "handed back"
        finally:
            connection._commit, atomic_steps._recorded = commit, recorded
        assert execute(claimer.claim(1)[0], Alone()) == "completed"

    assert ledger == ["saved"]
    assert Policy.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_no_user_code_runs_under_the_lock_of_the_workflows_row(ledger):
    """◆ Atomic steps take the workflow row last: an operator is not kept waiting by a body."""
    from workflows import fail

    @workflow("slow_save")
    def slow_save(run: Run) -> None:
        def save() -> None:
            effect("saved")
            operator = threading.Thread(target=lambda: (fail(run.id, by="ann", reason="now"), connections.close_all()))
            operator.start()
            operator.join(10)
            assert not operator.is_alive()

        run.step(save, atomic=True)

    start("slow_save")
    with hands() as claimer:
        assert execute(claimer.claim(1)[0], Alone()) == "fenced"

    assert Workflow.objects.get().status == "failed"
    assert not Policy.objects.exists()


@pytest.mark.django_db
def test_a_pause_asked_for_inside_an_atomic_step_is_seen_by_its_own_write():
    """Every write brings the requests that wait for the holder."""
    from workflows import verbs

    @workflow("paused_in_the_act")
    def paused_in_the_act(run: Run) -> None:
        run.step(lambda: verbs.pause(run.id, by="ann").seq, name="act", atomic=True)
        run.step(flows.note, "after", name="after")

    flows.calls.clear()

    assert rehearse("paused_in_the_act").turn().pause_reason == "suspended"
    assert flows.calls == []


@workflow("loses")
def loses(run: Run, code: str, times: int, retries: int = 1) -> str:
    """Its transaction is undone so often by the database itself."""

    def collide() -> str:
        flows.note("tried")
        if flows.calls.count("tried") <= times:
            with connection.cursor() as cursor:
                cursor.execute(f"DO $$ BEGIN RAISE EXCEPTION 'in the way' USING ERRCODE = '{code}'; END $$")
        return effect("saved")

    return str(run.step(collide, atomic=True, retries=retries))


CONFLICT_CODES = pytest.mark.parametrize("code", ["40P01", "40001"], ids=["deadlock", "serialization failure"])


@pytest.mark.django_db
@CONFLICT_CODES
def test_who_loses_a_few_conflicts_has_not_failed(code):
    """Faults: deadlock, serialization failure: no step fails because of it."""
    flows.calls.clear()

    done = rehearse("loses", code=code, times=CONFLICTS - 1).to_end()

    assert (done.status, done.output) == ("completed", "saved")
    step = Step.objects.get(workflow=done)
    assert (step.attempt, step.failures, step.error) == (CONFLICTS, 0, None)


@pytest.mark.django_db
@CONFLICT_CODES
@pytest.mark.parametrize("retries", [1, 2])
def test_who_loses_every_conflict_fails_in_the_end_and_says_why(code, retries):
    """I4, I11: ten in a row are one failed try; its tries are bounded, so it is."""
    flows.calls.clear()

    done = rehearse("loses", code=code, times=1000, retries=retries).to_end()

    assert (done.status, flows.calls.count("tried")) == ("failed", CONFLICTS * retries)
    told = list(done.events.filter(type__in=["step.interrupted", "step.failed"]).values_list("type", flat=True))
    assert told == (["step.interrupted"] * (CONFLICTS - 1) + ["step.failed"]) * retries
    step = Step.objects.get(workflow=done)
    assert (step.failures, step.error["type"]) == (retries, "OperationalError")
    assert step.error["message"].startswith("The database undid it 10 times in a row for others: in the way")


@pytest.mark.django_db
def test_while_it_is_tried_again_its_step_says_what_it_lost():
    flows.calls.clear()

    waits = rehearse("loses", code="40P01", times=1).turn()

    assert (waits.pause_reason, Step.objects.get(workflow=waits).error["conflicts"]) == ("retry", 1)


@workflow("saves_slowly")
def saves_slowly(run: Run) -> object:
    return run.step(lambda: acts["slowly"](), name="slowly", atomic=True)


@pytest.mark.django_db(transaction=True)
def test_a_slow_one_commits_behind_the_line_that_it_began():
    """Otherwise the journal finds it ended, is refused, and the workflow is handed back for nothing."""
    start("saves_slowly")
    committing, commit = threading.Event(), threading.Event()
    with hands() as claimer:
        journal = claimer.journal
        apply = journal.apply
        journal.apply = lambda *given: (committing.set(), commit.wait(10), apply(*given))[-1]

        def slowly() -> str:
            assert committing.wait(10)  # it runs for longer than a moment: its start is under way
            threading.Timer(0.3, commit.set).start()
            return effect("saved")

        acts["slowly"] = slowly
        outcome = execute(claimer.claim(1)[0], Alone())

    assert outcome == "completed"
    assert [event.type for event in Workflow.objects.get().events.order_by("seq")][2:] == [
        "step.started",
        "step.completed",
        "workflow.completed",
    ]


@pytest.mark.django_db(transaction=True)
def test_what_was_handed_back_while_its_body_ran_cannot_commit(ledger, settings):
    """I3; faults: SIGTERM. A hand-over raises no fence: who holds it is compared too, in the same locking read."""
    settings.REKINDLE = settings.REKINDLE | {"SHOW_START_AFTER": 60}  # nothing but the commit itself asks
    held = []

    @workflow("handed_back_in_the_act")
    def handed_back_in_the_act(run: Run) -> None:
        def save() -> None:
            effect("saved")
            if len(ledger) == 1:
                assert held[0].hand_back()
                gone = threading.Thread(target=wait_until_nobody_holds_it)
                gone.start()
                gone.join()

        run.step(save, atomic=True)

    def wait_until_nobody_holds_it() -> None:
        while Workflow.objects.filter(worker__isnull=False).exists():
            threading.Event().wait(0.01)
        connections.close_all()

    start("handed_back_in_the_act")
    with hands() as claimer:
        held += claimer.claim(1)
        assert execute(held[0], Alone()) == "fenced"
        assert (Workflow.objects.get().status, Policy.objects.exists(), Step.objects.exists()) == (
            "queued",
            False,
            False,
        )

        assert execute(claimer.claim(1)[0], Alone()) == "completed"

    assert ledger == ["saved", "saved"]
    assert Policy.objects.count() == 1

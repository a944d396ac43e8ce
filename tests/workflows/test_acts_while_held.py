"""Operators and signals act while a worker holds the workflow: nothing that was acknowledged is lost."""

import time

import pytest

from workflows import Run, resume, signal, verbs, workflow
from workflows.executing import execute
from workflows.models import Event, Step, Workflow
from workflows.paths import Alone
from workflows.starting import start
from workflows.testing import rehearse

from .hands import hands

acts: dict[str, object] = {}  # what happens inside the step "act"


@workflow("acted_upon")
def acted_upon(run: Run, then: str = "") -> object:
    run.step(lambda: acts["act"](run.id), name="act")
    if then == "receive":
        return run.receive("letter")
    return run.step(lambda: "end", name="last")


@workflow("two_readers")
def two_readers(run: Run) -> list[object]:
    return [run.receive("letter", timeout=60), run.receive("letter", timeout=60)]


@workflow("one_waits_one_works")
def one_waits_one_works(run: Run) -> list[object]:
    def works(run: Run) -> str:
        return str(run.step(lambda: acts["act"](run.id), name="act"))

    return list(run.parallel("both", waits=lambda run: run.receive("letter"), works=works))


@pytest.mark.django_db
def test_a_pause_that_the_holder_heard_of_through_its_own_write_holds():
    """I10: it must not wake itself for the very request that suspended it."""
    acts["act"] = lambda pk: verbs.pause(pk, by="ann").seq
    rehearsal = rehearse("acted_upon")

    paused = rehearsal.to_end()

    assert (paused.status, paused.pause_reason, paused.wake_at, paused.asked) == ("paused", "suspended", None, None)
    rehearsal.resume(by="ann")
    assert rehearsal.to_end().output == "end"


@pytest.mark.django_db(transaction=True)
def test_a_pause_that_was_withdrawn_before_it_was_carried_out_does_not_suspend_for_good():
    """I1, I10: whoever resumed it will not come again."""
    acts["act"] = lambda pk: None
    workflow = start("acted_upon")
    with hands() as claimer:
        held = claimer.claim(1)[0]
        verbs.pause(workflow.pk, by="ann")
        claimer.refresh(held)
        write = held.write

        def late(**given):
            verbs.resume(workflow.pk, by="ann")
            write(**given)

        held.write = late
        assert execute(held, Alone()) == "suspended"

        assert Workflow.objects.get().wake_at is not None
        assert len(claimer.claim(1)) == 1


@pytest.mark.django_db(transaction=True)
def test_a_signal_that_is_read_while_the_workflow_parks_wakes_it():
    """A signal sent before, while or after the workflow parks is never lost."""
    acts["act"] = lambda pk: None
    workflow = start("acted_upon", {"then": "receive"})
    with hands() as claimer:
        held = claimer.claim(1)[0]
        write = held.write

        def late(**given):
            if given.get("event") == "signal.started":
                signal(workflow.pk, "letter", "hello")
                claimer.refresh(held)  # the news arrive after the path looked, before the row is parked
            write(**given)

        held.write = late
        assert execute(held, Alone()) == "paused"

        (held,) = claimer.claim(1)
        assert execute(held, Alone()) == "completed"
    assert Workflow.objects.get().output == "hello"


@pytest.mark.django_db(transaction=True)
def test_a_request_that_is_read_while_the_workflow_parks_is_carried_out():
    """I10."""
    acts["act"] = lambda pk: None
    workflow = start("acted_upon", {"then": "receive"})
    with hands() as claimer:
        held = claimer.claim(1)[0]
        write = held.write

        def late(**given):
            if given.get("event") == "signal.started":
                verbs.cancel(workflow.pk, by="ann")
                claimer.refresh(held)
            write(**given)

        held.write = late
        execute(held, Alone())

    assert Workflow.objects.get().status == "cancelled"


@pytest.mark.django_db(transaction=True)
def test_a_signal_for_a_branch_that_waits_beside_one_that_works_is_read():
    workflow = start("one_waits_one_works")
    with hands() as claimer:
        held = claimer.claim(1)[0]

        def act(pk):
            signal(pk, "letter", "hello")
            claimer.refresh(held)
            return "worked"

        acts["act"] = act
        assert execute(held, Alone()) == "completed"
    assert Workflow.objects.get().output == ["hello", "worked"]
    assert workflow.pk == Workflow.objects.get().pk


@pytest.mark.django_db(transaction=True)
def test_a_signal_that_was_taken_but_is_not_yet_stored_is_not_read_again():
    """The same id counts once, also when somebody else's act makes the holder look into the inbox."""
    workflow = start("two_readers")
    signal(workflow.pk, "letter", 1, uid="one")
    with hands() as claimer:
        held = claimer.claim(1)[0]
        write = held.write

        def late(**given):
            if given.get("event") == "signal.received":
                claimer.refresh(held)
            write(**given)

        held.write = late
        assert execute(held, Alone()) == "paused"

    assert Event.objects.filter(type="signal.received").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_branch_that_waits_is_entered_again_when_its_pend_is_answered():
    """Waits belong to paths: the holder itself re-enters a branch whose wait ends."""

    @workflow("answered_branch")
    def answered_branch(run: Run) -> list[object]:
        def works(run: Run) -> str:
            return str(run.step(lambda: acts["act"](run.id), name="act"))

        return list(run.parallel("both", waits=lambda run: run.pend("desk"), works=works))

    start("answered_branch")
    with hands() as claimer:
        held = claimer.claim(1)[0]

        def act(pk):
            resume(pk, by="ann", result="yes")
            claimer.refresh(held)
            return "worked"

        acts["act"] = act
        assert execute(held, Alone()) == "completed"
    assert Workflow.objects.get().output == ["yes", "worked"]


@pytest.mark.django_db(transaction=True)
def test_an_answer_that_came_just_before_the_deadline_is_not_overwritten_by_it():
    """I2, I10: the database decides; the run looks again."""

    @workflow("slow_desk")
    def slow_desk(run: Run) -> object:
        return run.pend("desk", timeout=0.01)

    start("slow_desk")
    with hands() as claimer:
        assert execute(claimer.claim(1)[0], Alone()) == "paused"
        time.sleep(0.02)
        held = claimer.claim(1)[0]  # its time is over, and it knows of no answer
        resume(held.id, by="ann", result="just in time")

        assert execute(held, Alone()) == "handed back"
        assert execute(claimer.claim(1)[0], Alone()) == "completed"
    assert Workflow.objects.get().output == "just in time"
    assert Step.objects.get().status == "done"


@pytest.mark.django_db(transaction=True)
def test_a_signal_of_which_its_holder_has_not_heard_wakes_what_it_parks():
    """I1; faults: a signal sent while the workflow parks. The database knows by its nudges, so it is due at once."""
    workflow = start("mail")
    with hands() as claimer:
        held = claimer.claim(1)[0]
        signal(workflow.pk, "letter", "hello")
        row = {"status": "paused", "pause_reason": "pend", "basket": "signal:letter", "nudges": held.nudges}

        held.write(row=row, event="workflow.paused")

        assert Workflow.objects.get().wake_at is not None
        assert [one.id for one in claimer.claim(1)] == [workflow.pk]


@pytest.mark.django_db(transaction=True)
def test_variables_that_somebody_gave_are_heard_and_those_the_run_has_set_stay():
    workflow = start("acted_upon", variables={"theirs": 1, "ours": 1})
    with hands() as claimer:
        held = claimer.claim(1)[0]
        held.variables = held.variables | {"ours": 2}  # set, and not written yet
        Workflow.objects.filter(pk=workflow.pk).update(variables={"theirs": 3, "ours": 1, "new": 3})

        claimer.refresh(held)

        assert held.variables == {"theirs": 3, "ours": 2, "new": 3}
        Workflow.objects.filter(pk=workflow.pk).update(variables={"theirs": 4, "ours": 2, "new": 3})
        claimer.refresh(held)
        assert held.variables == {"theirs": 4, "ours": 2, "new": 3}

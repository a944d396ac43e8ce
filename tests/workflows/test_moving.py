"""What waits for a person is moved to another basket: nothing of it is lost, whoever holds it and whoever dies."""

import pytest
from django.db import OperationalError, connection, transaction

from workflows import Run, resume, verbs, workflow
from workflows.errors import BadValue, Refused
from workflows.executing import execute
from workflows.models import Step, Workflow
from workflows.paths import Alone
from workflows.starting import start
from workflows.testing import rehearse

from .hands import hands
from .invariants import check

acts: dict[str, object] = {}  # what happens inside the step "act"


@workflow("desk_to_desk")
def desk_to_desk(run: Run) -> object:
    return run.pend("desk", timeout=3600)


@workflow("deep_desks")
def deep_desks(run: Run) -> object:
    def inner(run: Run) -> object:
        return run.parallel("q", deep=lambda run: run.pend("deep"))

    return run.parallel("p", flat=lambda run: run.pend("flat"), inner=inner)


@workflow("waits_beside_work")
def waits_beside_work(run: Run) -> list[object]:
    def works(run: Run) -> str:
        return str(run.step(lambda: acts["act"](run.id), name="act"))

    return list(run.parallel("both", waits=lambda run: run.pend("desk"), works=works))


@pytest.mark.django_db
def test_what_was_moved_waits_there_with_its_deadline_and_is_resumed_from_there():
    rehearsal = rehearse("desk_to_desk")
    before = rehearsal.turn()

    verbs.move_to(before.pk, "other desk", by="ann", reason="his work")

    after, step = Workflow.objects.get(), Step.objects.get()
    assert (after.basket, step.basket, step.name) == ("other desk", "other desk", "desk")
    assert (after.wake_at, after.fence, after.status) == (before.wake_at, before.fence, "paused")
    told = after.events.last()
    assert (told.type, told.data) == (
        "pend.moved",
        {"basket": "desk", "to": "other desk", "path": ".", "by": "ann", "reason": "his work"},
    )
    check(after.pk)
    with pytest.raises(Refused, match="nothing of it waits for a person in desk"):
        verbs.resume(after.pk, basket="desk")
    rehearsal.resume(basket="other desk", result="yes")
    assert rehearsal.to_end().output == "yes"


@pytest.mark.django_db
def test_the_row_names_the_deepest_whichever_is_moved():
    """S3-046."""
    rehearsal = rehearse("deep_desks")
    pk = rehearsal.to_end().pk

    verbs.move_to(pk, "elsewhere", basket="flat")
    assert Workflow.objects.get().basket == "deep"

    verbs.move_to(pk, "deeper")
    assert Workflow.objects.get().basket == "deeper"
    assert set(Step.objects.exclude(basket="").values_list("basket", flat=True)) == {"elsewhere", "deeper"}


@pytest.mark.django_db
def test_moving_to_where_it_waits_already_tells_nothing():
    pk = rehearse("desk_to_desk").turn().pk
    seq = Workflow.objects.get().seq

    verbs.move_to(pk, "desk")

    assert Workflow.objects.get().seq == seq


@pytest.mark.django_db
@pytest.mark.parametrize("to", ["retry_queue", "signal:letter"])
def test_nothing_is_moved_to_where_nobody_looks(to):
    pk = rehearse("desk_to_desk").turn().pk

    with pytest.raises(Refused, match="nobody looks for work there"):
        verbs.move_to(pk, to)

    assert Workflow.objects.get().basket == "desk"


@pytest.mark.django_db
@pytest.mark.parametrize("to", ["", "x" * 81, "a\0b"])
def test_a_basket_has_a_name_that_can_be_stored(to):
    with pytest.raises(BadValue):
        verbs.move_to(rehearse("desk_to_desk").turn().pk, to)


@pytest.mark.django_db
def test_what_does_not_wait_for_a_person_is_not_moved():
    waiting = rehearse("desk_to_desk")
    pk = waiting.turn().pk
    verbs.resume(pk, result=1)

    with pytest.raises(Refused, match="nothing of it waits for a person"):
        verbs.move_to(pk, "other")
    waiting.to_end()
    with pytest.raises(Refused, match=r"\(completed\): nothing of it waits for a person"):
        verbs.move_to(pk, "other")


@pytest.mark.django_db
def test_what_is_suspended_can_be_moved_and_stays_suspended():
    rehearsal = rehearse("desk_to_desk")
    pk = rehearsal.turn().pk
    verbs.pause(pk, by="ann")

    verbs.move_to(pk, "other desk")

    suspended = Workflow.objects.get()
    assert (suspended.pause_reason, suspended.basket) == ("suspended", "")
    rehearsal.resume()
    rehearsal._let_time_pass()
    assert rehearsal.turn().basket == "other desk"


@pytest.mark.django_db(transaction=True)
def test_the_holder_parks_it_where_it_was_moved_to():
    """It works on another path meanwhile, and its fence holds."""
    start("waits_beside_work")
    with hands() as claimer:
        held = claimer.claim(1)[0]

        def act(pk):
            verbs.move_to(pk, "other desk", by="ann")
            claimer.refresh(held)
            return "worked"

        acts["act"] = act
        assert execute(held, Alone()) == "paused"

        parked = Workflow.objects.get()
        assert (parked.basket, parked.wake_at) == ("other desk", None)
        resume(parked.pk, basket="other desk", result="yes")
        assert execute(claimer.claim(1)[0], Alone()) == "completed"
    assert Workflow.objects.get().output == ["yes", "worked"]


@pytest.mark.django_db(transaction=True)
def test_a_holder_that_parks_before_it_hears_of_it_looks_again():
    """The nudge it has not read makes the row due: it comes back and parks under the right name."""
    start("waits_beside_work")
    with hands() as claimer:
        held = claimer.claim(1)[0]
        acts["act"] = lambda pk: verbs.move_to(pk, "other desk", by="ann").status
        assert execute(held, Alone()) == "paused"

        assert Workflow.objects.get().wake_at is not None
        assert execute(claimer.claim(1)[0], Alone()) == "paused"
    parked = Workflow.objects.get()
    assert (parked.basket, parked.wake_at) == ("other desk", None)
    check(parked.pk)


@pytest.mark.django_db(transaction=True)
def test_a_death_in_the_middle_of_the_move_leaves_it_where_it_was():
    """Row, step and diary are one commit."""
    start("desk_to_desk")
    with hands() as claimer:
        execute(claimer.claim(1)[0], Alone())
    before = Workflow.objects.get()

    def die() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            verbs.move_to(before.pk, "other desk")
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(OperationalError):
        die()
    connection.close()

    after = Workflow.objects.get()
    assert (after.basket, after.seq, Step.objects.get().basket) == ("desk", before.seq, "desk")

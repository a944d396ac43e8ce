"""The group commit: what is released is durable, what is refused was not ours, and nothing is lost between them."""

import threading

import pytest
from django.db import connection, transaction

from workflows import start, start_many
from workflows.applying import apply
from workflows.errors import Fenced, Refusal
from workflows.held import Entry
from workflows.models import Event, Step, Worker, Workflow

from .hands import done, hands

pytestmark = pytest.mark.django_db(transaction=True)


def seqs(workflow_id):
    return list(Event.objects.filter(workflow=workflow_id).order_by("seq").values_list("seq", flat=True))


def test_what_is_released_is_durable():
    start("three")
    with hands() as claimer:
        held = claimer.claim(1)[0]

        held.write(step=done(held, "a"), result='"x"', event="step.completed")

        assert Step.objects.get().result == "x"


def test_two_paths_of_one_workflow_in_one_batch_lose_nothing():
    """◆ The natural SQL silently loses one of the two."""
    start("three")
    with hands() as claimer:
        held = claimer.claim(1)[0]
        claimer.journal.submit = lambda _: None  # gather, then write both at once
        threads = [
            threading.Thread(
                target=held.write, kwargs={"step": done(held, "s", path), "event": "step.completed"}, daemon=True
            )
            for path in (".p.a.", ".p.b.")
        ]
        for thread in threads:
            thread.start()
        while not (held.pending and len(held.pending.waiters) == 2):
            pass
        del claimer.journal.submit

        claimer.journal.submit(held)
        for thread in threads:
            thread.join(10)

    assert Step.objects.count() == 2
    assert seqs(held.id) == [1, 2, 3, 4]
    assert Workflow.objects.get().seq == 4


def test_a_write_that_meets_a_take_over_in_the_middle_of_its_commit_is_not_written():
    """◆ A fence in an unlocked join is no fence: it would wait for the row and then write over the new owner. I3."""
    start("three")
    applied = []
    with hands() as claimer:
        held = claimer.claim(1)[0]
        entry = Entry(n=1)
        held._record(entry, done(held, "late"), "done", 0, None, None)
        with transaction.atomic():
            Workflow.objects.update(fence=2, worker=Worker.objects.create(host="other", pid=1))
            cursor = claimer.connection.cursor()
            thread = threading.Thread(
                target=lambda: applied.append(apply(cursor, claimer.worker, [(held, entry)])), daemon=True
            )
            thread.start()
            thread.join(0.5)  # it has seen the old fence by now, or has not been let near the row
        thread.join(10)

    assert applied == [{}]
    assert not Step.objects.exists()
    assert Workflow.objects.get().applied == 0


def test_a_write_under_an_old_fence_is_refused_and_told_once():
    """I3."""
    start("three")
    with hands() as claimer:
        held = claimer.claim(1)[0]
        Workflow.objects.update(fence=5, worker=None, wake_at=Workflow.objects.get().due_at)

        with pytest.raises(Fenced):
            held.write(step=done(held, "a"), event="step.completed")
        with pytest.raises(Fenced):
            held.write(step=done(held, "b"), event="step.completed")

    assert not Step.objects.exists()
    told = Event.objects.get(type="workflow.zombie_refused")
    assert (told.fence, told.data) == (5, {"refused_fence": 1})


def test_a_write_refused_because_an_operator_acted_is_no_zombie():
    from workflows import fail

    workflow = start("three")
    with hands() as claimer:
        held = claimer.claim(1)[0]
        fail(workflow.pk, by="ann", reason="enough")

        with pytest.raises(Fenced):
            held.write(step=done(held, "a"), event="step.completed")

    assert not Event.objects.filter(type="workflow.zombie_refused").exists()


def test_a_row_that_somebody_has_locked_does_not_hold_up_the_others():
    """◆ Locked rows wait for the next batch."""
    ids = start_many("three", [{"tag": "a"}, {"tag": "b"}])
    with hands() as claimer:
        both = {held.id: held for held in claimer.claim(2)}
        cursor = connection.cursor()
        cursor.execute("BEGIN")
        cursor.execute("SELECT FROM rekindle_workflow WHERE id = %s FOR UPDATE", [ids[0]])
        stuck, free = [
            threading.Thread(target=both[one].write, kwargs={"event": f"test.{n}"}, daemon=True)
            for n, one in enumerate(ids)
        ]
        try:
            stuck.start()
            free.start()
            free.join(10)
            assert (stuck.is_alive(), free.is_alive()) == (True, False)
        finally:
            cursor.execute("COMMIT")
        stuck.join(10)
        assert not stuck.is_alive()
    assert set(Event.objects.filter(type__startswith="test.").values_list("type", flat=True)) == {"test.0", "test.1"}


def test_a_batch_with_one_bad_row_is_halved_until_the_culprit_is_alone():
    """◆ A batch that fails for a reason other than the connection harms nobody else."""
    start_many("three", [{"tag": str(n)} for n in range(8)])
    errors = {}

    def write(held, wrong):
        try:
            held.write(event="test.fine", row={"status": "paused"} if wrong else None)
        except Refusal as refusal:
            errors[held.id] = str(refusal)

    with hands() as claimer:
        all_held = claimer.claim(8)
        journal = claimer.journal
        journal.submit = lambda _: None
        threads = [threading.Thread(target=write, args=(held, n == 3), daemon=True) for n, held in enumerate(all_held)]
        for thread in threads:
            thread.start()
        while not all(held.pending and held.pending.waiters for held in all_held):
            pass
        del journal.submit
        for held in all_held:
            journal.submit(held)
        for thread in threads:
            thread.join(10)

    assert list(errors) == [all_held[3].id]
    assert "alive_means_someone_will_wake_it" in errors[all_held[3].id]
    assert Event.objects.filter(type="test.fine").count() == 7


def test_rows_that_would_be_lost_abort_the_statement():
    """◆ Rows written are compared with rows asked before anybody is released."""
    start("three")
    with hands() as claimer:
        held = claimer.claim(1)[0]
        entry = Entry()
        held._tell(entry, "test", None, None, None)
        entry.events[0]["id"] = "00000000-0000-0000-0000-000000000000"  # belongs to nobody: the join drops it

        with pytest.raises(Exception, match="rows were lost in a batch of 1"):
            apply(claimer.connection.cursor(), claimer.worker, [(held, entry)])

    assert Workflow.objects.get().seq == 2


def test_a_commit_that_nobody_heard_counts_as_done():
    """Every write carries (fence, n): its outcome is looked up, never guessed, and never taken for a broken fence."""
    start("three")
    with hands() as claimer:
        held = claimer.claim(1)[0]
        held.write(step=done(held, "a"), event="step.completed")  # n = 1 is applied
        entry = Entry(n=1)
        later = Entry(n=2)

        left = claimer.journal._resolve([(held, entry)])
        assert left == []
        assert [one for _, one in claimer.journal._resolve([(held, later)])] == [later]

    assert not Event.objects.filter(type="workflow.zombie_refused").exists()


@pytest.mark.parametrize("statement", ["UPDATE rekindle_event SET type = 'x'", "DELETE FROM rekindle_event"])
def test_the_diary_is_append_only(statement):
    """I5."""
    start("three")

    with pytest.raises(Exception, match="append-only"), connection.cursor() as cursor:
        cursor.execute(statement)

"""One act on many workflows: settled when it begins, each item once, and a stop that means it."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction

from recovery import batches, duties
from recovery.batches import carrying
from recovery.batches.hands import Hands
from recovery.models import AuditEntry, Batch, BatchItem
from tests.factories import StepFactory, WorkflowFactory
from workflows.errors import NotFound, Refused
from workflows.models import Event, Workflow

pytestmark = pytest.mark.django_db


def begin(act="cancel", found=None, **given):
    signed = {"by": "ada", "via": "page", "reason": "tidy up", "chosen": "All"} | given
    return batches.begin(act, Workflow.objects.all() if found is None else found, **signed)


def carry_on():
    return dict(batches.carry_on(time.monotonic() + 60))


def test_a_batch_is_settled_when_it_begins_oldest_first():
    """I10: what comes later is not hit by accident."""
    first, second = WorkflowFactory(), WorkflowFactory(running=True)

    batch = begin()
    WorkflowFactory()

    items = list(batch.items.order_by("pk").values_list("workflow_id", "workflow_name", "workflow_key", "fence"))
    assert items == [(first.pk, "three", first.key, 0), (second.pk, "three", second.key, 1)]
    assert (batch.state, batch.total, batch.confirmed, batch.left) == ("waiting", 2, 2, 2)
    assert Workflow.objects.filter(status="cancelled").count() == 0
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.subject, entry.subject_id, entry.reason) == ("begin", "batch", str(batch.pk), "tidy up")
    assert entry.after == {"act": "cancel", "chosen": "All", "total": 2}


def test_each_item_is_acted_upon_audited_and_answered():
    queued, over = WorkflowFactory(), WorkflowFactory(completed=True)
    batch = begin()

    assert carry_on() == {"done": 1, "skipped": 1}

    batch.refresh_from_db()
    queued.refresh_from_db()
    assert (batch.state, batch.done, batch.skipped, batch.failed) == ("done", 1, 1, 0)
    assert batch.begun_at <= batch.started_at <= batch.moved_at <= batch.ended_at
    assert queued.status == "cancelled"
    told = dict(batch.items.values_list("workflow_id", "sentence"))
    assert told[queued.pk] == f"{queued} is cancelled."
    assert told[over.pk].startswith("Cannot cancel")
    entry = AuditEntry.objects.get(subject_id=str(queued.pk))
    assert (entry.actor, entry.via, entry.reason, entry.token) == ("ada", "batch", "tidy up", f"batch {batch.pk}")


def test_an_item_whose_fence_has_moved_is_skipped_and_says_so():
    """I10: whoever agreed saw something else."""
    moved = WorkflowFactory()
    batch = begin("fail")
    Workflow.objects.filter(pk=moved.pk).update(fence=7)

    assert carry_on() == {"skipped": 1}

    moved.refresh_from_db()
    assert moved.status == "queued"
    assert "has changed since you looked, it is queued now" in batch.items.get().sentence
    assert "has changed since you looked" in AuditEntry.objects.get(subject="workflow").refused


def test_what_is_so_already_is_skipped_and_leaves_no_entry():
    WorkflowFactory(suspended=True)
    batch = begin("pause")

    assert carry_on() == {"skipped": 1}

    assert "already; nothing was done" in batch.items.get().sentence
    assert not AuditEntry.objects.filter(subject="workflow").exists()


def test_what_retention_has_removed_is_skipped():
    gone = WorkflowFactory()
    batch = begin()
    BatchItem.objects.update(workflow_id="00000000-0000-0000-0000-000000000001")

    assert carry_on() == {"skipped": 1}

    assert "There is no workflow" in batch.items.get().sentence
    assert Workflow.objects.get(pk=gone.pk).status == "queued"


@pytest.mark.parametrize(
    ("act", "trait", "then"),
    [
        ("recover", "orphan", "running"),
        ("recover", "failed", "queued"),
        ("recover", "cancelled", "queued"),
        ("revive", "failed", "queued"),
        ("pause", "queued", "paused"),
        ("resume", "suspended", "queued"),
        ("cancel", "sleeping", "cancelled"),
        ("fail", "queued", "failed"),
        ("discard", "failed", "failed"),
    ],
)
def test_every_act_goes_through_its_verb(act, trait, then):
    one = WorkflowFactory(**{trait: True})
    batch = begin(act)

    assert carry_on() == {"done": 1}, batch.items.get().sentence

    one.refresh_from_db()
    assert one.status == then
    assert one.worker is None


def test_a_batch_moves_what_waits_in_one_basket_to_another():
    """Of a workflow that waits in several, the wait that was searched for."""
    one = WorkflowFactory(pended=True, basket="desk")
    StepFactory(workflow=one, name="ask", kind="pend", status="waiting", basket="fraud", path=".checks.")
    batch = begin("move", basket="desk", to="night-shift")

    assert carry_on() == {"done": 1}, batch.items.get().sentence

    assert set(one.steps.values_list("path", "basket")) == {(".", "night-shift"), (".checks.", "fraud")}
    assert AuditEntry.objects.get(act="begin").after["to"] == "night-shift"


@pytest.mark.parametrize("to", ["", "retry_queue", "signal:paid"])
def test_a_batch_moves_nothing_to_where_nobody_looks(to):
    WorkflowFactory(pended=True, basket="desk")

    with pytest.raises(Refused):
        begin("move", to=to)

    assert not Batch.objects.exists()


def test_the_same_form_begins_one_batch():
    """I10: a double click."""
    WorkflowFactory()

    first, second = begin(token="t"), begin(token="t")

    assert first.pk == second.pk
    assert BatchItem.objects.count() == AuditEntry.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_presses_at_the_same_moment_are_one_batch():
    """I10."""
    WorkflowFactory()
    together = threading.Barrier(4)

    def press(_):
        together.wait()
        try:
            return begin(token="t").pk
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as presses:
        begun = set(presses.map(press, range(4)))

    assert begun == {Batch.objects.get().pk}
    assert BatchItem.objects.count() == AuditEntry.objects.count() == 1


def test_more_than_were_agreed_to_are_refused_and_fewer_are_not():
    for _ in range(3):
        WorkflowFactory()

    with pytest.raises(Refused, match="there are more than the 2 you saw"):
        begin(confirmed=2)
    assert not Batch.objects.exists()

    batch = begin(confirmed=5)
    assert (batch.confirmed, batch.total) == (5, 3)


@pytest.mark.parametrize("found", [lambda: Workflow.objects.none(), lambda: Workflow.objects.filter(name="nobody")])
def test_a_batch_of_nothing_does_not_begin(found):
    with pytest.raises(Refused, match="no workflow matches"):
        begin(found=found())
    assert not Batch.objects.exists()
    assert not AuditEntry.objects.exists()


def test_a_batch_needs_an_act_and_a_reason():
    WorkflowFactory()

    with pytest.raises(Refused, match="a reason is required"):
        begin(reason="  ")
    with pytest.raises(Refused, match="'explode' is no act for many workflows"):
        begin("explode")


def test_a_batch_is_bounded_and_takes_the_oldest(monkeypatch):
    monkeypatch.setattr("recovery.batches.beginning.MOST", 2)
    old, older_than_last, _ = WorkflowFactory(), WorkflowFactory(), WorkflowFactory()

    batch = begin()

    assert set(batch.items.values_list("workflow_id", flat=True)) == {old.pk, older_than_last.pk}


def test_stopping_leaves_the_rest_alone_and_is_audited():
    for _ in range(3):
        WorkflowFactory()
    batch = begin()

    carrying._carry(batch, batch.items.order_by("pk")[0].pk)
    stopped = batches.stop(batch.pk, by="otto", via="page", reason="the wrong ones")

    assert carry_on() == {}
    assert (stopped.state, stopped.done, stopped.left, stopped.stopped_by) == ("stopped", 1, 2, "otto")
    assert Workflow.objects.filter(status="queued").count() == 2
    entry = AuditEntry.objects.get(act="stop")
    assert (entry.actor, entry.reason, entry.before) == ("otto", "the wrong ones", {"state": "running"})
    assert entry.after == {"state": "stopped", "handled": 1, "left": 2}


def test_what_is_over_cannot_be_stopped():
    WorkflowFactory()
    batch = begin()
    carry_on()

    with pytest.raises(Refused, match="is done already"):
        batches.stop(batch.pk, by="otto", via="page")
    with pytest.raises(NotFound, match="There is no batch"):
        batches.stop(batch.pk + 1, by="otto", via="page")


def test_an_item_that_breaks_is_told_and_stops_no_other():
    """I11."""
    bad, good = WorkflowFactory(), WorkflowFactory()
    Workflow.objects.filter(pk=bad.pk).update(seq=2**31 - 1)  # its diary is full
    batch = begin()

    assert carry_on() == {"failed": 1, "done": 1}

    batch.refresh_from_db()
    assert (batch.state, batch.failed) == ("done", 1)
    assert batch.items.get(workflow_id=bad.pk).sentence.startswith("It could not be done: ")
    assert Workflow.objects.get(pk=good.pk).status == "cancelled"
    assert Workflow.objects.get(pk=bad.pk).status == "queued"


def test_several_batches_take_turns(monkeypatch):
    """I11: a long one does not keep a short one waiting."""
    monkeypatch.setattr(carrying, "SLICE", 2)
    for _ in range(5):
        WorkflowFactory(name="naps")
    WorkflowFactory()
    long, short = begin(found=Workflow.objects.filter(name="naps")), begin(found=Workflow.objects.filter(name="three"))

    carry_on()

    events = Event.objects.filter(type="workflow.cancelled").order_by("pk").values_list("workflow__name", flat=True)
    assert list(events)[:3] == ["naps", "naps", "three"]
    assert {one.state for one in Batch.objects.filter(pk__in=[long.pk, short.pk])} == {"done"}


def test_the_time_of_a_runner_ends_between_two_items():
    WorkflowFactory()
    batch = begin()

    assert batches.carry_on(time.monotonic() - 1) == {}

    batch.refresh_from_db()
    assert (batch.state, batch.left) == ("waiting", 1)


def test_the_duty_tells_what_it_did():
    WorkflowFactory()
    WorkflowFactory(completed=True)
    begin()

    duty = duties.run("batches", "scheduled task")

    assert (duty.found, duty.recovered, duty.skipped, duty.failed, duty.note) == (2, 0, 1, 0, {"done": 1})


@pytest.mark.django_db(transaction=True)
def test_a_workers_look_out_carries_a_batch_out():
    WorkflowFactory()
    hands = Hands()
    hands.look_out()
    assert hands._thread is None, "there is nothing to do"

    batch = begin()
    hands._next = 0.0
    hands.look_out()
    hands._thread.join(30)

    batch.refresh_from_db()
    assert batch.state == "done"


@pytest.fixture
def elsewhere(transactional_db):
    """Another connection, as another process has one."""
    other = connections.create_connection("default")
    yield other
    other.close()


def test_what_another_runner_has_in_hand_is_left_to_it(elsewhere):
    WorkflowFactory()
    WorkflowFactory()
    batch = begin()
    first = batch.items.order_by("workflow_id").first()
    with elsewhere.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT FROM rekindle_recovery_batchitem WHERE id = %s FOR UPDATE", [first.pk])

        assert carry_on() == {"done": 1}

        cursor.execute("ROLLBACK")  # it died
    batch.refresh_from_db()
    assert (batch.state, batch.left) == ("running", 1)
    assert carry_on() == {"done": 1}
    batch.refresh_from_db()
    assert batch.state == "done"


def test_an_item_under_way_when_the_stop_comes_is_undone(elsewhere, monkeypatch):
    """I10: once the stop has been answered nothing follows it, not even what had begun before."""
    one = WorkflowFactory()
    batch = begin()

    def act_and_be_stopped(*given):
        told = act(*given)
        with elsewhere.cursor() as cursor:
            cursor.execute("UPDATE rekindle_recovery_batch SET state = 'stopped', ended_at = now()")
        return told

    act = carrying._act
    monkeypatch.setattr(carrying, "_act", act_and_be_stopped)

    assert carry_on() == {}

    one.refresh_from_db()
    batch.refresh_from_db()
    assert (one.status, batch.state, batch.left) == ("queued", "stopped", 1)
    assert not AuditEntry.objects.filter(subject="workflow").exists()
    assert batch.items.get().result == ""


def test_a_lost_connection_costs_nothing_but_a_second_try(elsewhere, monkeypatch):
    WorkflowFactory()
    WorkflowFactory()
    batch, cut = begin(), []

    def act_and_be_cut(*given):
        told = act(*given)
        if not cut:
            cut.append(connection.connection.info.backend_pid)
            with elsewhere.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s)", cut)
        return told

    act = carrying._act
    monkeypatch.setattr(carrying, "_act", act_and_be_cut)

    assert carry_on() == {"done": 2}

    assert cut
    assert batch.items.filter(result="done").count() == AuditEntry.objects.filter(subject="workflow").count() == 2


def test_the_counts_cannot_exceed_what_there_is():
    WorkflowFactory()
    batch = begin()

    with pytest.raises(Exception, match="rekindle_batch_adds_up"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE rekindle_recovery_batch SET done = 2 WHERE id = %s", [batch.pk])


def told(*words):
    out = StringIO()
    call_command("rekindle", "batch", *words, stdout=out)
    return out.getvalue()


def test_the_command_line_counts_first_and_begins_when_it_is_told_how_many():
    wanted, _ = WorkflowFactory(failed=True), WorkflowFactory()
    words = ("revive", "--search", "status:failed", "--reason", "mended")

    assert told(*words) == "1 match; nothing was done. Add --expect 1 to revive them.\n"
    assert not Batch.objects.exists()

    assert "has begun: revive 1." in told(*words, "--expect", "1")
    batch = Batch.objects.get()
    assert (batch.via, batch.reason, batch.chosen, batch.query) == (
        "cli",
        "mended",
        "status:failed",
        "q=status%3Afailed",
    )
    assert [item.workflow_id for item in batch.items.all()] == [wanted.pk]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--search", "age:soon", "--reason", "x", "--expect", "1"), "age"),
        (("--search", "status:queued", "--expect", "2"), "a reason is required"),
        (("--search", "status:queued", "--reason", "x", "--expect", "1"), "more than the 1 you saw"),
        (("--search", "status:failed", "--reason", "x", "--expect", "1"), "no workflow matches"),
        (("--search", "status:queued", "--reason", "x", "--expect", "0"), "--expect must be the number"),
    ],
)
def test_the_command_line_refuses_with_a_sentence(words, sentence):
    WorkflowFactory()
    WorkflowFactory()

    with pytest.raises(CommandError, match=sentence):
        told("cancel", *words)
    assert not Batch.objects.exists()

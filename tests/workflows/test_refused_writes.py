"""What the database will not store, or not now: the one run ends with the reason, the others never notice."""

import threading

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.db.models.functions import Now

from workflows import Run, error_pend, signal, start, start_many, workflow
from workflows.errors import Fenced, Overtaken, Refusal
from workflows.executing import execute
from workflows.held import HEAVY, Entry, Held
from workflows.journal import LARGEST, GroupJournal
from workflows.models import Event, Step, Worker, Workflow
from workflows.paths import Alone
from workflows.takeover import release
from workflows.testing import rehearse

from .hands import done, hands


@workflow("tells_everything")
def tells_everything(run: Run, what: str) -> object:
    """A body that catches every Exception; what cannot be stored must not slip through it."""
    tries = {
        "long sleep": lambda: run.sleep(1e20),
        "endless pend": lambda: run.pend("desk", timeout=float("inf")),
        "nameless basket": lambda: run.pend(""),
        "nameless answer": lambda: run.step(lambda: error_pend(""), name="body"),
        "long name": lambda: run.step(lambda: 1, name="n" * 201),
        "half a name": lambda: run.step(lambda: 1, name="\ud800"),
        "long path": lambda: run.parallel("p", {"b" * 400: lambda run: 1}),
    }
    try:
        tries[what]()
    except Exception as error:
        return [type(error).__name__, run.step(lambda: "went on", name="after")]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("what", "error"),
    [
        ("long sleep", "BadValue"),
        ("endless pend", "BadValue"),
        ("nameless basket", "BadValue"),
        ("nameless answer", "StepFailed"),
        ("long name", "BadValue"),
        ("half a name", "BadValue"),
        ("long path", "BadValue"),
    ],
)
def test_what_cannot_be_stored_is_refused_before_it_is_met(what, error):
    """Never a stuck workflow: the author's code hears of it, and replay meets the same."""
    rehearsal = rehearse("tells_everything", what=what)

    assert rehearsal.to_end().output == [error, "went on"]


@pytest.mark.django_db(transaction=True)
def test_a_pause_that_the_database_refuses_ends_the_workflow_with_the_reason():
    """I1: it must not stay held for ever by a worker that has let go of it."""

    @workflow("cannot_park")
    def cannot_park(run: Run) -> None:
        try:
            run.sleep(60)
        except BaseException:
            run.step(lambda: 1, name="goes on")

    start("cannot_park")
    with hands() as claimer:
        held = claimer.claim(1)[0]
        write = held.write

        def spoilt(**given):
            if (given.get("row") or {}).get("status") == "paused":
                given["row"]["pause_reason"] = "far too long for the column"
            write(**given)

        held.write = spoilt
        assert execute(held, Alone()) == "failed"

    failed = Workflow.objects.get()
    assert (failed.status, failed.worker, failed.error["type"]) == ("failed", None, "Refusal")
    assert not Step.objects.filter(name="goes on").exists()


@pytest.mark.django_db(transaction=True)
def test_the_journal_survives_what_is_no_text():
    """I11: one run that slips half a character past every check harms nobody else."""
    start_many("three", [{"tag": "a"}, {"tag": "b"}])
    with hands() as claimer:
        bad, good = claimer.claim(2)

        with pytest.raises(Refusal, match="surrogate"):
            bad.write(step=done(bad, "\ud800"), event="step.completed")

        good.write(step=done(good, "fine"), event="step.completed")
    assert Step.objects.get().name == "fine"


@pytest.mark.django_db(transaction=True)
def test_the_journal_survives_a_connection_that_breaks_while_it_looks_again():
    """A row was locked by another, and the connection went just when the journal asked why."""
    start("three")
    with hands() as claimer:
        held = claimer.claim(1)[0]
        journal = claimer.journal
        held.write(event="test.first")
        broken = [1]
        read = journal._read

        def breaks_once(asked, *, lock):
            if broken and not lock:
                broken.pop()
                journal._connection.close()
            return read(asked, lock=lock)

        journal._read = breaks_once
        locker = connection.cursor()
        locker.execute("BEGIN")
        locker.execute("SELECT FROM rekindle_workflow FOR UPDATE")
        thread = threading.Thread(target=held.write, kwargs={"event": "test.second"}, daemon=True)
        thread.start()
        while broken:
            pass
        locker.execute("COMMIT")
        thread.join(20)

        assert not thread.is_alive()
    assert Event.objects.filter(type="test.second").count() == 1
    assert not Event.objects.filter(type="workflow.zombie_refused").exists()


@pytest.mark.django_db(transaction=True)
def test_a_database_that_only_reads_for_a_while_fails_nobody():
    """A demoted primary refuses writes until the promoted one is found: trouble, not a bad value."""
    start("three")
    with hands() as claimer:
        held = claimer.claim(1)[0]
        held.write(event="test.first")
        claimer.journal._connection.execute("SET default_transaction_read_only = on")

        held.write(step=done(held, "a"), event="step.completed")

    assert Step.objects.get().status == "done"


@pytest.mark.django_db(transaction=True)
def test_a_step_that_has_ended_is_never_written_again():
    """I2: the database sees to it, whatever the process believes."""
    start("three")
    with hands() as claimer:
        held = claimer.claim(1)[0]
        step = done(held, "a")
        held.write(step=step, result='"first"', event="step.completed")
        step.status = "open"

        with pytest.raises(Overtaken):
            held.write(step=step, event="step.started")

    assert Step.objects.get().result == "first"


NO_ROOM = """
CREATE SEQUENCE written;
CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF nextval('written') > 4 THEN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END IF;
    RETURN NEW; END $$;
CREATE TRIGGER no_room BEFORE INSERT ON rekindle_event FOR EACH ROW EXECUTE FUNCTION no_room();
"""


@pytest.mark.django_db(transaction=True)
def test_a_start_for_which_there_is_no_room_is_refused_and_leaves_nothing():
    """Faults: disk full. Of ten that were asked for at once none is half accepted; on the command line it is a sentence."""
    with connection.cursor() as cursor:
        cursor.execute(NO_ROOM)
        try:
            with pytest.raises(OperationalError, match="No space left"):
                start_many("three", [{"tag": str(n)} for n in range(10)])
            with pytest.raises(CommandError, match="The database cannot be used: No space left on device") as refused:
                call_command("rekindle", "start", "three")
        finally:
            cursor.execute("DROP FUNCTION no_room CASCADE; DROP SEQUENCE written")

    assert refused.value.returncode > 1
    assert (Workflow.objects.count(), Event.objects.count()) == (0, 0)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("by", ["", "ann"], ids=["a sweep", "an operator"])
def test_what_others_did_after_it_lost_its_fence_hides_no_zombie(by):
    """I3: one zombie_refused event; a run that an operator stopped is none."""
    workflow = start("three")
    with hands() as old, hands() as new:
        held = old.claim(1)[0]
        Worker.objects.filter(pk=old.worker).update(ended_at=Now(), ended_why="silent")
        release(workflow.pk, by=by, detected_by="worker")
        Workflow.objects.update(wake_at=Now())
        assert new.claim(1)
        signal(workflow.pk, "letter", by="ann")

        with pytest.raises(Fenced):
            held.write(step=done(held, "late"), event="step.completed")

    refused = Event.objects.filter(type="workflow.zombie_refused")
    assert refused.count() == (0 if by else 1)


@pytest.mark.django_db(transaction=True)
def test_a_lazy_workflow_with_much_to_say_does_not_keep_all_of_it_for_its_end():
    """I11: one commit of it must not take longer than a statement may, or everybody waits behind it for ever."""
    seen = []

    @workflow("test_talks_much", persistence="lazy")
    def test_talks_much(run: Run) -> int:
        for n in range(30):
            run.step(lambda: "x" * 500_000, name=f"s{n}")
            seen.append(run._held.pending.size if run._held.pending else 0)
        return run.step(Step.objects.count, name="count")

    start("test_talks_much")
    with hands() as claimer:
        assert execute(claimer.claim(1)[0], Alone()) == "completed"

    assert max(seen) < HEAVY + 1_000_000
    assert 20 <= Workflow.objects.get().output < 31
    assert Step.objects.count() == 31


def test_a_commit_takes_no_more_once_it_is_large():
    """I11: however many have much to say at once."""
    journal = GroupJournal(0)
    for _ in range(10):
        held = Held.__new__(Held)
        held.lock, held.queued, held.pending = threading.Lock(), False, Entry(size=LARGEST // 2)
        journal.submit(held)

    assert len(journal._gather()) == 2

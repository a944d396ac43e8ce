"""What the database will not store, or not now: the one run ends with the reason, the others never notice."""

import threading

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection

from workflows import Run, error_pend, start, start_many, workflow
from workflows.errors import Overtaken, Refusal
from workflows.executing import execute
from workflows.models import Event, Step, Workflow
from workflows.paths import Alone
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

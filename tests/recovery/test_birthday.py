"""Seed 2 from end to end: everything missed is sent, late but once, with a real receiver and real processes."""

import os
import random
import signal
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from project.birthday import arrange, birthday
from tests.crash.conftest import until
from tests.recovery.receiver import receiving
from workflows import revive, start
from workflows.models import Event, Step, Workflow
from workflows.testing import Rehearsal

YEAR = timezone.now().year  # next year's lies ahead, whenever this runs

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def receiver():
    with receiving() as one:
        yield one


def missed(receiver, who, minutes):
    """A message that was due so many minutes ago."""
    given = {"user_id": who, "year": YEAR, "first_name": who, "last_name": "Doe", "born": "1990-03-15"}
    at = timezone.now() - timedelta(minutes=minutes)
    return start("birthday_message", given | {"webhook": receiver.url}, key=f"{who}:{YEAR}", at=at)


def this_year():
    return Workflow.objects.filter(name="birthday_message", input__year=YEAR)


def all_sent(count):
    return lambda: this_year().filter(status="completed").count() == count


def test_a_short_downtime_delivers_in_target_order(workers, receiver):
    """Scenario 1: S2-045, S2-046; S2-005, S2-081."""
    missed(receiver, "B", 2)
    missed(receiver, "A", 3)

    workers.start(concurrency=1)

    until(all_sent(2), "both were sent")
    assert receiver.messages() == ["A", "B"]
    late = this_year().order_by("due_at").values_list("lateness", flat=True)
    assert [seconds // 60 for seconds in late] == [3, 2]


def test_after_a_day_of_downtime_all_seventy_are_sent_once(workers, receiver):
    """Scenario 2: S2-001, S2-003, S2-004, S2-006, S2-047, C22."""
    for n in range(70):
        missed(receiver, f"U{n}", 24 * 60 - n * 10)

    workers.start()

    until(all_sent(70), "all 70 were sent")
    assert set(Counter(receiver.messages()).values()) == {1}
    assert len(receiver.keys()) == 70


def test_a_crash_in_the_middle_repeats_nothing_that_was_done(workers, receiver):
    """Scenario 3: S2-048, S2-049, S3-004, S3-057, C17, C21: the one under way may be sent twice, under the same key."""
    for n, who in enumerate("ABCDE"):
        missed(receiver, who, 60 - n)
    receiver.hold = "Hey, C "
    process = workers.start(concurrency=1)
    assert receiver.holding.wait(40)
    until(lambda: this_year().filter(status="completed").count() == 2, "the first two are done")

    os.killpg(process.pid, signal.SIGKILL)
    receiver.hold = None
    workers.start(concurrency=1)

    until(all_sent(5), "the other three were sent")
    assert Counter(receiver.messages()) == {"A": 1, "B": 1, "C": 2, "D": 1, "E": 1}
    assert len(receiver.keys()) == 5
    assert Workflow.objects.filter(input__year=YEAR + 1).count() == 5


def test_a_receiver_that_stays_down_ends_in_the_dead_letters_and_can_be_tried_again(receiver, caplog):
    """Scenario 4: S2-036, S2-050..S2-053, S2-063, C18, C28: three tries a minute apart, then somebody must look."""
    receiver.answers = [503, 503, 503]
    rehearsal = Rehearsal(missed(receiver, "A", 3))

    rehearsal.to_end()

    workflow = rehearsal.workflow
    assert (workflow.status, len(receiver.posts)) == ("failed", 3)
    assert Step.objects.get(workflow=workflow).failures == 3
    assert not Workflow.objects.filter(input__year=YEAR + 1).exists()
    told = [record for record in caplog.records if record.message == "Event processing failed"]
    assert [(one.eventId, one.userId, one.attempts) for one in told] == [(str(workflow.pk), "A", n) for n in (1, 2, 3)]
    assert all("503" in one.error for one in told)
    (moved,) = [record for record in caplog.records if record.message == "Event moved to DLQ"]
    assert (moved.eventId, "503" in moved.lastError) == (str(workflow.pk), True)

    revive(workflow.pk, by="somebody", reason="the receiver is back")
    rehearsal.to_end()
    assert (rehearsal.workflow.status, len(receiver.keys())) == ("completed", 1)


def test_a_receiver_that_nobody_reaches_is_tried_again(receiver):
    """S2-035, C18: a network failure is transient."""
    workflow = missed(receiver, "A", 3)
    Workflow.objects.filter(pk=workflow.pk).update(input=workflow.input | {"webhook": "http://127.0.0.1:9/nobody"})
    rehearsal = Rehearsal(workflow)

    rehearsal.turn()

    assert (rehearsal.workflow.status, rehearsal.workflow.pause_reason) == ("paused", "retry")


def test_a_refusal_is_not_tried_again(receiver):
    """C18: permanent."""
    receiver.answers = [410]
    rehearsal = Rehearsal(missed(receiver, "A", 3))

    rehearsal.to_end()

    assert (rehearsal.workflow.status, len(receiver.posts)) == ("failed", 1)
    assert "410" in rehearsal.workflow.error["message"]


def test_the_message_carries_its_key(receiver):
    """S2-062, S2-063, S2-064."""
    workflow = missed(receiver, "Ada", 3)

    Rehearsal(workflow).to_end()

    assert receiver.posts == [
        {
            "message": "Hey, Ada Doe it's your birthday",
            "idempotencyKey": str(workflow.pk),
            "eventId": str(workflow.pk),
        }
    ]


def test_a_message_that_was_sent_is_told_with_its_lateness(receiver, caplog):
    """S2-033: once its record is committed, not before."""
    caplog.set_level("INFO", "rekindle")
    workflow = missed(receiver, "Ada", 7)
    rehearsal = Rehearsal(workflow)

    rehearsal.crash_in("start_next_year")
    assert "Event processed successfully" not in caplog.messages
    rehearsal.to_end()

    (told,) = [record for record in caplog.records if record.message == "Event processed successfully"]
    assert (told.eventId, told.userId, told.latenessMinutes) == (str(workflow.pk), "Ada", 7)


def test_the_row_of_an_event_has_every_field_of_the_seed(receiver):
    """S2-041, S2-044: under our own names; whoever claims it gets an object, not a tuple of columns."""
    receiver.answers = [503]
    workflow = missed(receiver, "Ada", 3)
    due = workflow.due_at
    rehearsal = Rehearsal(workflow)

    rehearsal.turn()

    waiting, step = Workflow.objects.get(pk=workflow.pk), Step.objects.get(workflow=workflow)
    assert (waiting.pk, waiting.input["user_id"], waiting.due_at) == (workflow.pk, "Ada", due)
    assert (waiting.status, waiting.fence, step.failures) == ("paused", 1, 1)  # status, version, attempts
    assert "503" in step.error["message"]
    updated = waiting.events.latest("seq").at

    done = rehearsal.to_end()
    assert (done.status, done.fence, done.finished_at > updated) == ("completed", 2, True)
    assert done.events.latest("seq").at > updated


def test_next_years_message_is_started_in_the_commit_that_records_this_ones(receiver):
    """S2-032, C20: whoever dies before it starts none, whoever dies after it starts no second."""
    rehearsal = Rehearsal(missed(receiver, "A", 3))

    rehearsal.crash_after(1)
    assert (receiver.messages(), Workflow.objects.filter(input__year=YEAR + 1).count()) == (["A"], 0)
    rehearsal.crash_after(1)
    assert Workflow.objects.filter(input__year=YEAR + 1).count() == 1
    rehearsal.to_end()

    following = Workflow.objects.get(input__year=YEAR + 1)
    assert (following.status, following.key) == ("pending", f"A:{YEAR + 1}")
    assert following.due_at == datetime(YEAR + 1, 3, 15, 9, tzinfo=UTC)
    assert rehearsal.workflow.output == str(following.pk)
    assert receiver.messages() == ["A"]


def test_the_same_year_is_arranged_once_and_a_leap_day_has_its_birthday_every_year(receiver):
    person = {"first_name": "A", "last_name": "B", "born": "1992-02-29", "webhook": receiver.url}

    assert arrange("a", year=2031, **person).pk == arrange("a", year=2031, **person).pk
    assert [birthday("1992-02-29", year).day for year in (2027, 2028)] == [28, 29]


def test_it_processes_events_missed_during_downtime(workers, receiver):
    """S2-078."""
    missed(receiver, "A", 60)
    missed(receiver, "B", 120)

    workers.start()

    until(all_sent(2), "both were sent")


def test_it_does_not_reprocess_completed_events(workers, receiver):
    """S2-079, S2-058."""
    done = missed(receiver, "A", 60)
    Rehearsal(done).to_end()

    workers.start()
    missed(receiver, "B", 60)

    until(all_sent(2), "the other was sent")
    assert receiver.messages() == ["A", "B"]
    assert Event.objects.filter(workflow=done, type="workflow.started").count() == 1


def test_it_recovers_from_24_hours_of_downtime_with_three_who_race(workers, receiver):
    """S2-080, S2-059, S2-060, S2-084."""
    chance = random.Random(7)
    for n in range(100):
        missed(receiver, f"U{n}", chance.randrange(24 * 60))

    for _ in range(3):
        workers.start()

    until(all_sent(100), "all 100 were sent")
    assert set(Counter(receiver.messages()).values()) == {1}


def test_sigterm_in_the_middle_of_a_batch_loses_nothing_and_repeats_nothing(workers, receiver):
    """S2-024, C23, C27."""
    for n in range(40):
        missed(receiver, f"U{n}", 60)
    process = workers.start(concurrency=4)
    until(lambda: len(receiver.posts) >= 5, "some were sent")

    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(30) == 0
    assert not Workflow.objects.filter(worker__isnull=False).exists()
    workers.start()

    until(all_sent(40), "all were sent")
    assert set(Counter(receiver.messages()).values()) == {1}
    assert not this_year().exclude(recoveries=0).exists()

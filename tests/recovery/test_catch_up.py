"""Catching up is the ordinary claim: oldest first, in bounded batches, until nothing is left. How late is recorded."""

import json
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db.models.functions import Now
from django.utils import timezone

from recovery import late
from tests.workflows.hands import hands
from workflows import start, start_many
from workflows.logs import lateness
from workflows.models import Event, Policy, Worker, Workflow
from workflows.testing import rehearse

pytestmark = pytest.mark.django_db(transaction=True)


def ago(minutes):
    return timezone.now() - timedelta(minutes=minutes)


def completed(tag, minutes):
    """Due so many minutes ago, and done just now."""
    rehearsal = rehearse("three", tag=tag)
    Workflow.objects.filter(pk=rehearsal.workflow.pk).update(due_at=ago(minutes), wake_at=ago(minutes))
    rehearsal.to_end()
    return rehearsal.workflow


def test_what_was_missed_is_claimed_and_what_is_not_yet_due_is_not():
    """S2-009, S2-010, S2-012, S2-015..S2-018."""
    for tag, minutes in (("A", 60), ("B", 45), ("C", 30), ("D", -60)):
        start("three", {"tag": tag}, at=ago(minutes))

    with hands() as claimer:
        assert sorted(held.input["tag"] for held in claimer.claim(10)) == ["A", "B", "C"]
        assert claimer.claim(10) == []
        Workflow.objects.filter(input__tag="D").update(wake_at=Now(), due_at=Now())
        assert [held.input["tag"] for held in claimer.claim(10)] == ["D"]

    minutes = [round(one.lateness / 60) for one in Workflow.objects.order_by("input__tag")]
    assert minutes == [60, 45, 30, 0]


def test_a_thousand_missed_in_a_day_are_claimed_oldest_first_in_bounded_batches():
    """C22, S2-025: until a claim comes back short."""
    for n in range(1000):
        start("three", {"tag": str(n)}, at=ago(n * 7919 % 1440))
    oldest_first = list(Workflow.objects.order_by("due_at").values_list("due_at", flat=True))
    taken = []

    with hands() as claimer:
        while batch := claimer.claim(100):
            assert len(batch) <= 100
            taken.append(
                sorted(Workflow.objects.filter(pk__in=[held.id for held in batch]).values_list("due_at", flat=True))
            )

    assert len(taken) == 10
    assert [moment for batch in taken for moment in batch] == oldest_first


def test_the_first_claim_says_how_late_it_was_and_no_later_one_changes_that():
    """S2-028, S2-083: a sleep or a recovery later on is another matter; the diary has each claim's."""
    rehearsal = rehearse("naps", tag="a")
    Workflow.objects.update(due_at=ago(90), wake_at=ago(90))
    rehearsal.turn()
    first = Workflow.objects.get()
    Workflow.objects.update(wake_at=ago(30))

    rehearsal.turn()

    workflow = Workflow.objects.get()
    assert (workflow.started_at, workflow.lateness) == (first.started_at, first.lateness)
    claims = Event.objects.filter(type__in=["workflow.started", "workflow.resumed"]).order_by("seq")
    assert [round(event.seconds / 60) for event in claims] == [90, 30]


def test_lateness_is_counted_as_the_seed_counts_it():
    """S2-028, S2-073."""
    told = lateness(datetime(2025, 3, 15, 14, tzinfo=UTC), datetime(2025, 3, 16, 9, 0, 5, tzinfo=UTC))

    assert told == {
        "targetTime": "2025-03-15T14:00:00Z",
        "actualTime": "2025-03-16T09:00:05Z",
        "latenessMinutes": 1140,
        "latenessHours": "19.0",
        "reason": "Recovery from downtime",
    }


def test_the_late_list_has_what_was_completed_late_the_latest_first():
    """S2-076."""
    completed("on time", 4)
    completed("late", 6)
    completed("later", 600)

    found = late.late()

    assert [round(one["lateness_minutes"]) for one in found] == [600, 6]
    assert found[0].keys() >= {"id", "name", "key", "due_at", "started_at", "finished_at"}
    assert len(late.late(most=1)) == 1


def test_the_stuck_list_has_whatever_should_be_done_by_now_the_oldest_first():
    """S2-077, C17, C18: due, being run and trying again; not what sleeps, is done or is dead."""
    completed("done", 500)
    start("three", {"tag": "due"}, key="due", at=ago(61))
    start("three", {"tag": "soon"}, key="soon", at=ago(59))
    start("three", {"tag": "held"}, key="held", at=ago(300))
    worker = Worker.objects.create(host="h", pid=1)
    Workflow.objects.filter(key="held").update(status="running", worker=worker, wake_at=None, running_at=ago(290))
    flaky = rehearse("flaky", fails=5, tries=9)
    flaky.turn()
    Workflow.objects.filter(name="flaky").update(due_at=ago(120), key="retrying")
    rehearse("naps").turn()
    Workflow.objects.filter(name="naps").update(due_at=ago(500))

    found = late.stuck()

    assert [(one["key"], one["status"], one["attempts"]) for one in found] == [
        ("held", "running", 0),
        ("retrying", "paused", 1),
        ("due", "queued", 0),
    ]
    assert found[1]["last_error"] == "attempt 1"
    assert [round(one["age_minutes"]) for one in found] == [300, 120, 61]


def test_what_was_processed_is_summed_up_with_the_punctual_as_zero():
    """C25, C26, S2-066..S2-070."""
    assert late.processed()["recoveryMode"] is False
    for minutes in (0, 1, 4, 60):
        completed(str(minutes), minutes)

    told = late.processed()

    assert (told["eventsProcessed"], told["eventsFailed"], told["eventsLate"]) == (4, 0, 1)
    assert round(told["averageLatenessMinutes"]) == 15
    assert (round(told["maxLatenessMinutes"]), round(told["p95LatenessMinutes"])) == (60, 60)
    assert told["recoveryMode"] is True


def test_how_far_behind_counts_the_waiting_and_the_just_begun_but_not_a_paused_name():
    """S2-074, C25."""
    completed("done", 20)
    start_many("three", [{"tag": str(n)} for n in range(3)], at=ago(10))
    start_many("naps", [{"tag": str(n)} for n in range(3)], at=ago(10))
    Policy.objects.create(name="naps", paused=True)

    behind = late.catch_up()

    assert (behind.waiting, behind.started, round(behind.oldest_seconds / 60)) == (3, 1, 20)
    assert late.catch_up(scope="flaky").late == 0


@pytest.mark.parametrize(("verb", "quiet"), [("late", "Nothing was late."), ("stuck", "Nothing is stuck.")])
def test_both_questions_can_be_asked_on_the_command_line(verb, quiet):
    out = StringIO()
    call_command("rekindle", verb, stdout=out)
    assert out.getvalue().strip() == quiet

    completed("done", 90)
    start("three", at=ago(90))
    out = StringIO()
    call_command("rekindle", verb, "--json", stdout=out)

    (found,) = json.loads(out.getvalue())
    assert found["name"] == "three"
    out = StringIO()
    call_command("rekindle", verb, "--minutes", "91", stdout=out)
    assert out.getvalue().strip() == quiet

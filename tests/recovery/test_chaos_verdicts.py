"""The judge of `manage.py chaos` must itself be judged: each promise is broken on purpose, and it says by whom."""

import random
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now

from recovery.chaos import flows
from recovery.chaos.ledger import Line, read
from recovery.chaos.shapes import Accepted
from recovery.chaos.verdicts import judge
from workflows.definitions import Definition, _known
from workflows.models import Event, Step, Workflow
from workflows.testing import rehearse

pytestmark = pytest.mark.django_db


@pytest.fixture
def chain(tmp_path, monkeypatch):
    """One chain that has ended well, with its ledger: judged, nothing is broken."""
    for one in vars(flows).values():
        if isinstance(one, Definition):  # known while this test lasts
            _known.pop(one.name, None)
            monkeypatch.setitem(_known, one.name, one)
    monkeypatch.setenv("REKINDLE_CHAOS_LEDGER", str(tmp_path / "ledger"))
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE rekindle_chaos (workflow_id uuid NOT NULL, line int NOT NULL)")
    workflow = rehearse("chaos.chain", n=7).to_end()
    accepted = Accepted("t", random.Random(1))
    accepted.names[workflow.pk], accepted.numbers[workflow.pk] = "chaos.chain", 7
    lines = list(read(tmp_path / "ledger"))
    assert len(lines) == 6
    assert judge(accepted, lines) == []
    return accepted, lines


def broken(accepted, lines):
    return {one.promise for one in judge(accepted, lines)}


def row(accepted):
    return Workflow.objects.filter(pk__in=accepted.names)


def test_a_workflow_that_is_gone_or_not_ended_is_lost(chain):
    accepted, lines = chain
    row(accepted).update(status="paused", basket="desk", finished_at=None)

    assert "I1" in broken(accepted, lines)


def test_a_wrong_result_is_no_good_end(chain):
    accepted, lines = chain
    row(accepted).update(output=1)

    assert broken(accepted, lines) == {"I1"}


def test_an_innocent_that_was_given_up_is_told_as_such(chain):
    accepted, lines = chain
    row(accepted).update(status="failed", error={"type": "RecoveryFailed", "message": "…"})

    assert "I4" in broken(accepted, lines)


def test_a_body_that_began_after_it_was_recorded_ran_again(chain):
    """I2, by the database: under a later fence than the one that recorded it."""
    accepted, lines = chain
    first = lines[0]

    again = Line(first.workflow, first.path, first.position, first.fence + 2)

    assert broken(accepted, [*lines, again]) == {"I2"}


def test_the_ledger_alone_shows_who_went_back(chain):
    """I2, by the ledger: whoever has begun a step has the one before it on record."""
    accepted, lines = chain
    Step.objects.update(fence=100)

    assert broken(accepted, lines) == set()
    assert broken(accepted, [*lines, lines[2]._replace(fence=9)]) == {"I2"}


def test_an_effect_that_happened_twice_is_seen(chain):
    accepted, lines = chain
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO rekindle_chaos SELECT id, 0 FROM rekindle_workflow, generate_series(1, 2)")

    assert broken(accepted, lines) == {"I2"}


def test_a_line_of_an_older_writer_and_a_line_after_the_end_are_seen(chain):
    accepted, lines = chain
    workflow = row(accepted).get()
    Event.objects.create(workflow=workflow, seq=workflow.seq + 1, type="step.completed", fence=0)
    row(accepted).update(seq=F("seq") + 1)

    assert broken(accepted, lines) == {"I3"}


def test_a_gap_in_the_diary_and_a_state_that_it_does_not_tell_are_seen(chain):
    accepted, lines = chain
    row(accepted).update(seq=F("seq") + 1)
    assert broken(accepted, lines) == {"I5"}

    row(accepted).update(seq=F("seq") - 1, status="cancelled")
    assert "I5" in broken(accepted, lines)


def test_a_sleep_that_ended_early_is_seen(chain):
    accepted, lines = chain
    Step.objects.filter(position=0).update(kind="sleep", ended_at=Now(), wake_at=Now() + timedelta(minutes=1))

    assert broken(accepted, lines) == {"I8"}

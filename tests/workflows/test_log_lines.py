"""What the log says of a workflow: whom it concerns as facts, and never what the workflow was given."""

import logging
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from workflows import start
from workflows.logs import Context, lateness
from workflows.models import Step
from workflows.testing import Rehearsal, rehearse

from . import hanging  # noqa: F401  (defines some of them)

pytestmark = pytest.mark.django_db


@pytest.fixture
def lines(caplog):
    """Everything the engine logged, down to the last detail."""
    caplog.set_level(logging.DEBUG, "rekindle")
    logging.getLogger("rekindle").addHandler(caplog.handler)
    yield lambda part: [record for record in caplog.records if part in record.getMessage()]
    logging.getLogger("rekindle").removeHandler(caplog.handler)


def test_a_recovery_says_which_attempt_of_how_many(lines):
    """S0-050."""
    rehearsal = rehearse("three")
    rehearsal.crash_after(1)

    rehearsal.to_end()

    (line,) = lines("Attempting recovery")
    assert line.getMessage() == f"Attempting recovery for workflow {rehearsal.workflow.pk}. Attempt 1/3"
    assert (line.workflow, line.attempt, line.max_attempts) == (str(rehearsal.workflow.pk), 1, 3)
    assert line.worker


def test_a_start_after_a_long_downtime_is_told_once(lines):
    """S2-029, S2-072."""
    target = timezone.now() - timedelta(hours=19, seconds=5)
    rehearsal = Rehearsal(start("naps", at=target))

    rehearsal.to_end()

    (line,) = lines("Late event execution (recovery)")
    assert line.levelname == "WARNING"
    assert (line.latenessMinutes, line.latenessHours, line.reason) == (1140, "19.0", "Recovery from downtime")
    assert line.workflow == str(rehearsal.workflow.pk)
    assert line.targetTime == target.isoformat(timespec="seconds").replace("+00:00", "Z")


def test_lateness_is_counted_as_the_seed_says():
    """S2-073: its check value."""
    target, actual = datetime(2025, 3, 15, 14, tzinfo=UTC), datetime(2025, 3, 16, 9, 0, 5, tzinfo=UTC)

    assert lateness(target, actual) == {
        "targetTime": "2025-03-15T14:00:00Z",
        "actualTime": "2025-03-16T09:00:05Z",
        "latenessMinutes": 1140,
        "latenessHours": "19.0",
        "reason": "Recovery from downtime",
    }
    assert lateness(target, target + timedelta(minutes=60)) is None


def test_a_failed_step_says_whether_it_is_tried_again_and_not_what_its_error_quotes(lines):
    rehearse("flaky", fails=2, tries=2).to_end()

    first, second = lines("Step body of flaky failed")
    assert (first.step, first.attempt, first.error, first.will_retry) == ("body", 1, "ValueError", True)
    assert (second.attempt, second.will_retry) == (2, False)
    assert [line.attempt for line in lines("Step body of flaky is tried again")] == [2]
    (end,) = lines("flaky failed: StepFailed")
    assert (end.levelname, end.workflow) == ("ERROR", first.workflow)
    assert not lines("attempt 1")  # the error's own words


def test_a_blocked_workflow_says_so(lines):
    rehearsal = rehearse("naps")
    rehearsal.turn()
    Step.objects.filter(workflow=rehearsal.workflow, name="before").update(name="renamed")
    rehearsal._let_time_pass()

    rehearsal.turn()

    (line,) = lines("naps is blocked")
    assert line.workflow == str(rehearsal.workflow.pk)


def test_a_run_that_goes_well_says_nothing_above_debug(lines):
    """The hot path is silent."""
    rehearse("three").to_end()

    assert {record.levelname for record in lines("")} == {"DEBUG"}


def test_lines_of_a_body_say_where_it_is(caplog):
    caplog.handler.addFilter(context := Context())
    try:
        done = rehearse("writes_log_lines").to_end()
    finally:
        caplog.handler.removeFilter(context)

    (line,) = [record for record in caplog.records if record.name == "shop"]
    assert (line.workflow, line.step, line.attempt) == (str(done.pk), "greet", 1)


def test_lines_from_elsewhere_are_left_alone():
    record = logging.makeLogRecord({"name": "shop"})

    assert Context().filter(record)
    assert not hasattr(record, "workflow")

"""What is stored must be whole before anybody runs on it."""

import pytest

from tests.workflows import flows
from workflows import verbs
from workflows.integrity import flaw
from workflows.models import Step, Workflow
from workflows.testing import rehearse

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_ran():
    flows.calls.clear()


def test_a_step_that_is_missing_among_others_is_never_run_over():
    """S3-118, C8: held for review, and no step runs."""
    rehearsal = rehearse("three")
    rehearsal.crash_after(2)
    Step.objects.filter(workflow=rehearsal.workflow, position=0).delete()
    flows.calls.clear()

    workflow = rehearsal.to_end()

    assert (workflow.status, workflow.pause_reason) == ("paused", "suspended")
    assert workflow.error == {
        "type": "CorruptState",
        "message": "step 0 of path . is missing, although s1 after it is recorded",
    }
    assert workflow.events.last().type == "workflow.corrupt"
    assert flows.calls == []


def test_once_repaired_it_is_resumed_and_ends():
    """S3-119: manually fix the document."""
    rehearsal = rehearse("three")
    rehearsal.crash_after(2)
    Step.objects.filter(workflow=rehearsal.workflow, position=0).update(position=7)
    rehearsal.to_end()
    Step.objects.filter(workflow=rehearsal.workflow, position=7).update(position=0)

    verbs.resume(rehearsal.workflow.pk, by="otto")

    assert rehearsal.to_end().output == ["t:0", "t:1", "t:2"]


def test_a_branch_without_its_block_cannot_be_read():
    steps = [Step(path=".checks.fraud.", position=0, name="score")]

    assert flaw({}, {}, "", steps) == "path .checks.fraud. belongs to no parallel block that is recorded"


def test_what_a_ticket_left_behind_is_no_flaw():
    """B11: the handler has a path of its own; the others are not read again."""
    steps = [
        Step(path=".", position=0, name="work", kind="parallel", status="dropped"),
        Step(path=".work.alarm.", position=1, name="alarm", status="done"),
        Step(path=".!stop.", position=0, name="cleanup", status="open"),
    ]

    assert flaw({}, {}, "stop", steps) == ""


@pytest.mark.parametrize(("field", "value"), [("input", [1]), ("variables", "text")])
def test_a_document_of_another_shape_cannot_be_read(field, value):
    workflow = rehearse("three").workflow
    Workflow.objects.filter(pk=workflow.pk).update(**{field: value})
    workflow.refresh_from_db()

    assert flaw(workflow.input, workflow.variables, "", []).startswith(f"its {field} must be an object")


@pytest.mark.parametrize("name", ["fan", "jump", "three", "variables", "lazy", "recorded"])
def test_what_the_engine_writes_is_whole_at_every_crash(name):
    for steps in range(1, 8):
        workflow = rehearse(name)
        workflow.crash_after(steps)
        row = workflow.workflow

        assert flaw(row.input, row.variables, row.ticket, Step.objects.filter(workflow=row)) == ""


def test_an_atomic_step_takes_along_what_was_done_before_it():
    """S3-015: else a crash right after its commit would leave a step with nothing before it."""
    assert rehearse("lazy_atomic").to_end().output == ["first", "booked"]


def test_reviving_runs_again_what_ended_it_and_keeps_what_the_body_dealt_with():
    """I2."""
    rehearsal = rehearse("compensates")
    rehearsal.to_end()
    flows.calls.clear()

    verbs.revive(rehearsal.workflow.pk, by="otto", reason="the shop is open again")

    assert rehearsal.to_end().error["message"] == "step close failed: ValueError: refused"
    assert flows.calls == ["refused"]


def test_a_pend_that_timed_out_waits_anew_once_revived():
    rehearsal = rehearse("waits_in_vain")
    assert rehearsal.to_end().status == "failed"

    verbs.revive(rehearsal.workflow.pk, by="otto", reason="ask again")

    rehearsal._let_time_pass()
    assert rehearsal.turn().basket == "desk"
    rehearsal.resume(result="yes")
    assert rehearsal.to_end().output == "yes"

"""A workflow on the test's own connection: what is recorded is read, what is not is done."""

import pytest

from workflows import start
from workflows.definitions import find
from workflows.models import Event, Step, Workflow
from workflows.testing import assert_idempotent, rehearse

from . import flows

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def ledger():
    flows.calls.clear()
    return flows.calls


def diary(workflow):
    return list(Event.objects.filter(workflow=workflow).order_by("seq").values_list("type", flat=True))


def test_it_runs_to_its_end_and_its_diary_has_no_gap():
    """S3-010, S3-011, C35."""
    done = rehearse("three").to_end()

    assert (done.status, done.output) == ("completed", ["t:0", "t:1", "t:2"])
    events = Event.objects.filter(workflow=done).order_by("seq")
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert diary(done) == ["workflow.queued", "workflow.started", *["step.completed"] * 3, "workflow.completed"]


@pytest.mark.parametrize("after", [1, 2, 3])
def test_after_a_crash_recorded_steps_are_read_and_the_rest_is_done(ledger, after):
    """S3-006, S3-012, S3-013, S3-015: a recorded step never runs again."""
    rehearsal = rehearse("three")
    rehearsal.crash_after(after)

    done = rehearsal.to_end()

    assert done.status == "completed"
    assert ledger == ["t:0", "t:1", "t:2"]
    assert done.recoveries == 1


def test_a_sleep_leaves_memory_and_is_not_slept_twice(ledger):
    """C11: the deadline is written once."""
    rehearsal = rehearse("naps")

    paused = rehearsal.turn()

    assert (paused.status, paused.pause_reason, paused.worker) == ("paused", "sleep", None)
    assert paused.wake_at == Step.objects.get(workflow=paused, kind="sleep").wake_at
    assert rehearsal.to_end().output == "t:after"
    assert ledger == ["t:before", "t:after"]


def test_retries_count_all_tries_the_first_included(ledger):
    """C41."""
    assert rehearse("flaky", fails=2, tries=3).to_end().output == "done at 3"
    assert ledger == ["try"] * 3


def test_out_of_tries_the_workflow_fails_with_the_steps_error(ledger):
    failed = rehearse("flaky", fails=9, tries=2).to_end()

    assert (failed.status, failed.error["type"]) == ("failed", "StepFailed")
    assert ledger == ["try"] * 2


def test_a_pend_waits_for_a_person_who_may_change_variables():
    """S3-096."""
    rehearsal = rehearse("review")

    waiting = rehearsal.to_end()
    assert (waiting.status, waiting.basket, waiting.wake_at) == ("paused", "fraud-review", None)

    rehearsal.resume(result="fine", variables={"limit": 9})
    assert rehearsal.to_end().output == ["fine", 9]


@pytest.mark.parametrize(
    ("kind", "output", "ran"),
    [("pend", "first time", 1), ("again", "second time", 2), ("error", "second time", 2)],
)
def test_a_step_answers_with_a_pend(ledger, kind, output, ran):
    """S3-055, S3-097, S3-099: OK_PEND goes on with the next, OK_PEND_EOR and ERROR_PEND run again."""
    rehearsal = rehearse("answers", kind=kind)
    assert rehearsal.to_end().basket == "desk"

    rehearsal.resume()

    assert rehearsal.to_end().output == output
    assert len(ledger) == ran


def test_a_retry_basket_resumes_by_itself(ledger):
    """S3-088, C38."""
    assert rehearse("answers", kind="error", basket="retry_queue").to_end().output == "second time"


def test_a_signal_may_come_early_and_counts_once():
    rehearsal = rehearse("mail")

    assert rehearsal.signal("letter", {"n": 1}, uid="one")
    assert not rehearsal.signal("letter", {"n": 1}, uid="one")

    assert rehearsal.to_end().output == {"n": 1}


def test_a_signal_wakes_the_workflow_that_waits_for_it():
    rehearsal = rehearse("mail")
    assert rehearsal.to_end().status == "paused"

    rehearsal.signal("letter", "hello")

    assert rehearsal.to_end().output == "hello"


def test_parallel_paths_nest_wait_and_come_again_in_a_loop(ledger):
    """S3-100: paths .fan.left. and .fan.right.inner.a., the second round .fan~2.left."""
    done = rehearse("fan").to_end()

    assert done.output == ["t:l2", ["t:a", "t:b"], "t:again"]
    assert sorted(ledger) == ["t:a", "t:again", "t:b", "t:l1", "t:l2"]
    paths = set(Step.objects.filter(workflow=done).values_list("path", flat=True))
    assert {".", ".fan.left.", ".fan.right.inner.a.", ".fan~2.left."} <= paths


@pytest.mark.parametrize("after", range(1, 9))
def test_a_crash_among_parallel_paths_repeats_only_what_had_not_finished(ledger, after):
    """S3-105, C33, C34."""
    rehearsal = rehearse("fan")
    rehearsal.crash_after(after)

    assert rehearsal.to_end().output == ["t:l2", ["t:a", "t:b"], "t:again"]
    assert sorted(ledger) == ["t:a", "t:again", "t:b", "t:l1", "t:l2"]


def test_a_ticket_drops_open_paths_and_enters_its_handler(ledger):
    done = rehearse("jump").to_end()

    assert done.output == "stopped after cleanup"
    assert ledger == ["alarm", "cleanup"]
    assert not Step.objects.filter(workflow=done, status="waiting").exists()


def test_replay_enters_the_handler_of_a_ticket_that_was_raised(ledger):
    rehearsal = rehearse("jump")
    rehearsal.crash_after(2)

    assert rehearsal.to_end().output == "stopped after cleanup"
    assert ledger == ["alarm", "cleanup"]


def test_a_ticket_whose_handler_a_deploy_removed_waits_for_code_that_has_it(ledger, monkeypatch):
    """C8, C53: blocked by name, no attempt burned, and it goes on where it was."""
    rehearsal = rehearse("jump")
    rehearsal.crash_after(2)
    rehearsal._let_time_pass()
    with monkeypatch.context() as deploy:
        deploy.delitem(find("jump").tickets, "stop")
        blocked = rehearsal.turn()
    assert (blocked.status, blocked.pause_reason, blocked.recovery_attempts) == ("paused", "blocked", 0)
    assert blocked.error["message"] == "the ticket stop was raised, the code now has no handler for it"

    Workflow.objects.update(refused_by="another deploy")

    assert rehearsal.to_end().output == "stopped after cleanup"
    assert ledger == ["alarm", "cleanup"]


def test_a_body_that_swallows_everything_cannot_run_on(ledger):
    paused = rehearse("swallows").turn()

    assert paused.status == "paused"
    assert ledger == ["swallowed"]


def test_variables_are_set_once_and_a_persons_change_survives_replay():
    rehearsal = rehearse("variables")
    rehearsal.to_end()

    rehearsal.resume(variables={"limit": 9})

    assert rehearsal.to_end().output == {"limit": 9, "seen": True}


def test_lazy_keeps_nothing_between_pauses_and_everything_at_them(ledger):
    """S3-018, S3-019, S3-128, C35."""
    rehearsal = rehearse("lazy")

    rehearsal.turn()

    assert rehearsal.steps == [".s0", ".s1", ".s2"]
    assert rehearsal.to_end().status == "completed"
    assert ledger == ["lazy:0", "lazy:1", "lazy:2"]


def test_a_crash_of_a_lazy_one_repeats_every_step_since_its_last_write(ledger):
    """S3-018, S3-019, S3-056, S3-123, C35: its row was there from the start, its steps were not."""
    rehearsal = rehearse("lazy")
    rehearsal.crash_in("s2")
    assert (rehearsal.steps, rehearsal.workflow.status) == ([], "running")

    assert rehearsal.to_end().status == "completed"
    assert ledger == ["lazy:0", "lazy:1", "lazy:2"] * 2


def test_now_random_and_uuid_are_the_same_on_every_replay():
    rehearsal = rehearse("recorded")
    rehearsal.turn()
    before = list(
        Step.objects.filter(workflow=rehearsal.workflow, kind="value")
        .order_by("position")
        .values_list("result", flat=True)
    )

    assert rehearsal.to_end().output == before


def test_a_step_that_is_run_twice_must_answer_alike():
    """S3-008, S3-054, S3-091: x = 5 is idempotent, x = x + 1 is not."""
    state = {"x": 0}
    assert assert_idempotent(lambda: state.update(x=5) or state["x"]) == 5
    with pytest.raises(AssertionError, match="not idempotent: first 6, then 7"):
        assert_idempotent(lambda: state.update(x=state["x"] + 1) or state["x"])
    assert assert_idempotent(lambda n: n + 1, 1) == 2
    with pytest.raises(AssertionError, match="not idempotent"):
        assert_idempotent(lambda: flows.calls.append("x") or len(flows.calls))


def test_the_same_key_and_input_start_one():
    first = start("three", {"tag": "a"}, key="K")

    assert start("three", {"tag": "a"}, key="K").pk == first.pk
    assert Workflow.objects.count() == 1

"""What recovery would do, said before it is done."""

import pytest

from recovery.case import case
from recovery.planning import plan, plan_of
from tests.recovery.world import ago, dead_worker, done, live_worker, opened, parallel, pended, put, running
from tests.workflows.test_command_line import say
from workflows import generations
from workflows.errors import NotFound
from workflows.ids import uuid7
from workflows.models import Step, Workflow

pytestmark = pytest.mark.django_db


def order(*steps: Step, **fields) -> Workflow:
    return running(fields.pop("worker", None) or dead_worker(), *steps, name="three", key="ORD-1", **fields)


def test_one_sentence_says_it_all():
    workflow = order(done("load"), done("reserve", 1), opened("charge_card", 2), recovery_attempts=1)

    assert plan(workflow.pk).summary == (
        "Will recover three ORD-1: resumes at charge_card (attempt 2 of 3), 2 steps kept; "
        "charge_card runs again (not declared idempotent)."
    )


def test_the_same_for_programs():
    workflow = order(done("load"), opened("charge_card", 1, idempotent=True))

    found = plan(workflow.pk)

    assert found.as_json() == {
        "kept": 1,
        "again": [{"path": ".", "name": "charge_card", "idempotent": True, "uncertain": True}],
        "attempt": 1,
        "max_attempts": 3,
        "waiting": [],
        "ticket": "",
        "sentences": [
            "Will recover three ORD-1: resumes at charge_card (attempt 1 of 3), 1 step kept; charge_card runs again."
        ],
    }


def test_between_two_steps_nothing_runs_again():
    """S3-050, S3-051."""
    found = plan(order(done("load"), done("reserve", 1)).pk)

    assert found.again == []
    assert "resumes after reserve" in found.summary


def test_before_the_first_step():
    assert "begins at its first step (attempt 1 of 3), 0 steps kept" in plan(order().pk).summary


@pytest.mark.parametrize(
    ("on_crash", "says", "again"),
    [
        ("rerun", "pay runs again (not declared idempotent)", 1),
        ("later", "pay runs again, in half a minute or later (not declared idempotent)", 1),
        ("hold", "pay is held for review in crash_review (begun, its end is unknown)", 0),
        ("fail", "pay fails, as its author said (begun, its end is unknown)", 0),
    ],
)
def test_the_author_says_what_happens_to_a_step_that_died(on_crash, says, again):
    """C32, C59, S1-032..S1-034."""
    found = plan(order(opened("pay", on_crash=on_crash)).pk)

    assert says in found.summary
    assert len(found.again) == again


def test_all_crashed_branches_run_again_and_human_pends_stay():
    """S3-116, C34."""
    workflow = order(
        parallel("checks", ["fraud", "stock", "desk"]),
        opened("score", path=".checks.fraud."),
        opened("reserve", path=".checks.stock."),
        pended("fraud-review", path=".checks.desk."),
    )

    found = plan(workflow.pk)

    assert [step.path for step in found.again] == [".checks.fraud.", ".checks.stock."]
    assert found.waiting == [
        {"path": ".checks.desk.", "name": "fraud-review", "basket": "fraud-review", "kind": "human"}
    ]
    assert "fraud-review keeps waiting in fraud-review" in found.summary


def test_all_branches_ended_and_the_join_not_recorded():
    """C33."""
    workflow = order(
        parallel("checks", ["fraud", "stock"]),
        done("score", path=".checks.fraud."),
        done("reserve", path=".checks.stock."),
    )

    assert plan(workflow.pk).repairs == ["All branches of checks are recorded: path . continues after the join."]


def test_branches_that_had_not_begun():
    """C33: created again from the stored list."""
    workflow = order(parallel("checks", ["fraud", "stock"]), opened("score", path=".checks.fraud."))

    assert plan(workflow.pk).repairs == ["stock of checks had not begun and begins, as the stored branches say."]


def test_a_ticket_leaves_the_other_paths_behind():
    """B12, S3-039."""
    workflow = order(
        done("load"), opened("work", 1, status="dropped"), opened("cleanup", path=".!stop~2."), ticket="stop~2"
    )

    found = plan(workflow.pk)

    assert (found.ticket, found.kept) == ("stop", 0)
    assert [step.name for step in found.again] == ["cleanup"]


def test_a_failed_one_is_revived_at_the_step_that_failed():
    failed = Step(position=1, name="charge", status="failed", error={"type": "ValueError"}, ended_at=ago(1))
    workflow = put(Workflow(name="three", key="ORD-2", status="failed", finished_at=ago(1)), done("load"), failed)

    found = plan(workflow.pk)

    assert found.summary.startswith("Will revive three ORD-2: resumes at charge (attempt 1 of 3), 1 step kept;")
    assert found.as_json()["again"] == [{"path": ".", "name": "charge", "idempotent": False, "uncertain": False}]


def test_what_is_held_by_a_live_worker_is_left_alone():
    found = plan(order(opened("charge"), worker=live_worker()).pk)

    assert found.summary.startswith("Will not recover three ORD-1: its worker host-1:4711 is alive, last heard")


def test_a_wait_keeps_its_end():
    """C11: never recomputed."""
    workflow = order(
        parallel("fan", ["left", "right"]),
        Step(path=".fan.left.", position=0, name="sleep", kind="sleep", status="waiting", wake_at=ago(-3600)),
        opened("b", path=".fan.right."),
    )

    assert plan(workflow.pk).repairs[0].startswith("sleep on path .fan.left. still ends at 2")


def test_a_lazy_one_may_repeat_more_than_one_step():
    """S3-019, S3-124."""
    assert plan(order(persistence="lazy").pk).repairs == ["It saves lazily: every step since its last save runs again."]


def test_a_hostile_key_does_not_reach_the_terminal():
    workflow = running(dead_worker(), name="three", key="\x1b[2Jgone")

    assert "\x1b" not in say("plan", workflow.pk)


def test_a_reopened_one_that_waits_at_its_desk_says_so():
    """B11: reopened, and pended first."""
    old = put(Workflow(name="jump", status="completed", finished_at=ago(1)))
    new = generations.reopen(old.pk, "stop", by="otto", reason="again", basket="desk")

    assert [wait["basket"] for wait in plan(new.pk).waiting] == ["desk"]
    assert case(new.pk)["process_info"]["pend_exec_path"] == ".reopened."


def test_a_plan_asks_no_database():
    found = plan_of(Workflow(name="order", key="A", status="running"), [opened("charge")])

    assert found.refusal == ""


def test_no_plan_without_a_workflow():
    with pytest.raises(NotFound):
        plan(uuid7())

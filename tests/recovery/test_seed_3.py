"""Seed 3, scenario by scenario: the case document before a crash's repair and after it."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from recovery import acts
from recovery.case import QUIET, case, case_of, is_orphaned, units
from recovery.checking import check
from recovery.sanitizing import sanitize
from tests.recovery.world import ago, dead_worker, done, live_worker, opened, parallel, pended, put, running
from tests.workflows import flows
from tests.workflows.test_command_line import refused, say, say_json
from workflows.errors import BadValue, Refused
from workflows.models import Status, Step, Workflow
from workflows.testing import rehearse
from workflows.variables import type_of

pytestmark = pytest.mark.django_db
OTTO = {"by": "otto", "via": "page", "reason": "test"}


@pytest.fixture(autouse=True)
def _nothing_ran_yet():
    flows.calls.clear()


def before_and_after(workflow: Workflow) -> tuple[dict, dict]:
    """S3-007, S3-037: the document as the crash left it, and once it was taken over; the rules say the same."""
    before = case(workflow.pk)["process_info"]
    acts.recover(workflow.pk, **OTTO)
    after = case(workflow.pk)["process_info"]
    steps = list(Step.objects.filter(workflow=workflow))
    assert sanitize(before, units(steps)) | {"ts": 0} == after | {"ts": 0}
    return before, after


def only(document: dict, *names: str) -> list[dict]:
    return [{name: path[name] for name in names} for path in document["exec_paths"]]


SHOWN = ("name", "status", "step", "unit_response_type", "pend_workbasket")


def test_scenario_1_crash_during_a_step():
    """S3-040..S3-042, S3-045, S3-048."""
    before, after = before_and_after(running(dead_worker(), opened("send_email")))

    assert only(before, *SHOWN[:4]) == [
        {"name": ".", "status": "started", "step": "send_email", "unit_response_type": None}
    ]
    assert before["pend_exec_path"] == ""
    assert only(after, *SHOWN) == [
        {
            "name": ".",
            "status": "completed",
            "step": "send_email",
            "unit_response_type": "ok_pend_eor",
            "pend_workbasket": "workflow_temp_hold",
        }
    ]
    assert after["pend_exec_path"] == "."


def test_scenario_1_the_step_executes_again():
    """S3-049."""
    rehearsal = rehearse("three", tag="mail")
    rehearsal.crash_after(1)
    Step.objects.create(workflow=rehearsal.workflow, position=1, name="s1", status="open")
    flows.calls.clear()

    assert rehearsal.to_end().status == Status.COMPLETED
    assert flows.calls == ["mail:1", "mail:2"]


def test_scenario_2_crash_after_a_step():
    """S3-043, S3-050."""
    before, after = before_and_after(running(dead_worker(), done("step_1"), done("step_2", 1)))

    assert only(before, "status", "step", "unit_response_type") == [
        {"status": "started", "step": "step_2", "unit_response_type": "ok_proceed"}
    ]
    assert only(after, "status", "step", "unit_response_type", "pend_workbasket") == [
        {
            "status": "completed",
            "step": "step_2",
            "unit_response_type": "ok_pend",
            "pend_workbasket": "workflow_temp_hold",
        }
    ]


def test_scenario_2_continues_with_the_next_step():
    """S3-013, S3-051, S3-115: what is recorded does not run again."""
    rehearsal = rehearse("three", tag="two")
    rehearsal.crash_after(2)
    flows.calls.clear()

    assert rehearsal.to_end().status == Status.COMPLETED
    assert flows.calls == ["two:2"]


def test_scenario_3_crash_of_one_of_three_branches():
    """S3-052."""
    before, after = before_and_after(
        running(
            dead_worker(),
            parallel("route_1", ["1", "2", "3"]),
            done("step_a", path=".route_1.1."),
            opened("step_b", path=".route_1.2."),
            done("step_c", path=".route_1.3."),
        )
    )

    assert only(before, "name", "status", "step")[1:] == [
        {"name": ".route_1.1.", "status": "completed", "step": "step_a"},
        {"name": ".route_1.2.", "status": "started", "step": "step_b"},
        {"name": ".route_1.3.", "status": "completed", "step": "step_c"},
    ]
    assert [path["pend_workbasket"] for path in after["exec_paths"][1:]] == ["", "workflow_temp_hold", ""]
    assert after["exec_paths"][2]["unit_response_type"] == "ok_pend_eor"
    assert after["pend_exec_path"] == ".route_1.2."


def test_scenario_3_only_the_broken_branch_runs():
    """S3-053."""
    rehearsal = rehearse("fan", tag="fan")
    rehearsal.crash_after(3)
    kept = list(flows.calls)
    flows.calls.clear()

    assert rehearsal.to_end().status == Status.COMPLETED
    assert not set(kept) & set(flows.calls)


def test_all_branches_crash_together():
    """S3-116, C34: every one is held; the first of the deepest is reported."""
    _, after = before_and_after(
        running(
            dead_worker(),
            parallel("route_1", ["1", "2"]),
            opened("a", path=".route_1.1."),
            opened("b", path=".route_1.2."),
        )
    )

    assert [path["unit_response_type"] for path in after["exec_paths"][1:]] == ["ok_pend_eor", "ok_pend_eor"]
    assert after["pend_exec_path"] == ".route_1.1."


def test_all_branches_joined_and_the_parent_did_not_go_on():
    """C33: the parent is held, and continues after the join."""
    _, after = before_and_after(running(dead_worker(), parallel("route_1", ["1"]), done("a", path=".route_1.1.")))

    assert (after["pend_exec_path"], after["exec_paths"][0]["pend_workbasket"]) == (".", "workflow_temp_hold")
    assert after["exec_paths"][0]["unit_response_type"] == "ok_proceed"


def test_the_basket_of_a_crash_is_the_one_before_and_no_person_is_asked():
    """S3-042, C31: it reads as the former basket, and recovery resumes it by itself."""
    workflow = running(
        dead_worker(), Step(position=0, name="desk", kind="pend", status="done", ended_at=ago(9)), opened("pay", 1)
    )

    _, after = before_and_after(workflow)

    assert after["exec_paths"][0]["pend_workbasket"] == "desk"
    workflow.refresh_from_db()
    assert (workflow.basket, workflow.wake_at is None) == ("", False)


# -- the rules by themselves ----------------------------------------------------------------------------------------


def document(**changes) -> dict:
    path = {
        "name": ".",
        "status": "started",
        "step": "s",
        "unit_response_type": None,
        "pend_workbasket": "",
        "prev_pend_workbasket": "",
    }
    paths = [path | given for given in changes.pop("exec_paths", [{}])]
    return {"pend_exec_path": "", "is_complete": False, "ticket": "", "exec_paths": paths} | changes


@pytest.mark.parametrize(
    ("unit", "response", "becomes"),
    [
        ("task", None, "ok_pend_eor"),
        ("task", "ok_proceed", "ok_pend"),
        ("s_route", "ok_proceed", "ok_pend_eor"),
        ("p_route", "ok_proceed", "ok_proceed"),
        ("task", "error_pend", "error_pend"),
        ("task", "ok_pend", "ok_pend"),
    ],
)
def test_the_resume_point_follows_from_the_response(unit, response, becomes):
    """S3-009, S3-043..S3-045, S3-102, B12: it takes the document and what the definition says of its units."""
    after = sanitize(document(exec_paths=[{"unit_response_type": response}]), {"s": unit})

    assert after["exec_paths"][0]["unit_response_type"] == becomes


def test_completeness_comes_first():
    """S3-038, B12: a document without the flag is complete if nothing is started and nothing pends."""
    quiet = document(exec_paths=[{"status": "completed"}], is_complete=None)

    assert sanitize(quiet, {})["is_complete"] is True
    assert sanitize(document(is_complete=None), {})["is_complete"] is False


def test_a_ticket_comes_before_the_paths():
    """S3-038, S3-039, B12: the shortest path is held, and the broken ones are not repaired."""
    after = sanitize(document(ticket="stop", exec_paths=[{"name": ".r.1."}, {"name": "."}]), {})

    assert after["pend_exec_path"] == "."
    assert after["exec_paths"][1]["ticket"] == "stop"
    assert after["exec_paths"][1]["unit_response_type"] == "ok_pend"
    assert after["exec_paths"][0]["status"] == "started"


def test_the_deepest_pend_is_reported_and_the_first_of_equals():
    """S3-046, S3-047."""
    held = [{"name": name, "pend_workbasket": "b"} for name in (".", ".r.1.", ".r.2.")]

    assert sanitize(document(exec_paths=held), {})["pend_exec_path"] == ".r.1."


def test_no_path_to_pend_to_cannot_be_repaired():
    """S3-118, B12 rule 4."""
    with pytest.raises(Refused, match="cannot be repaired"):
        sanitize(document(exec_paths=[{"status": "completed"}]), {})


def test_repairing_twice_changes_nothing_more():
    """S0-006."""
    once = sanitize(document(), {})

    assert sanitize(once, {}) == once


# -- the document -----------------------------------------------------------------------------------------------------


def test_show_case_prints_the_document():
    """S3-022..S3-031, S3-035: what was executed last is only told."""
    workflow = running(
        live_worker(), done("validate_order"), opened("charge", 1), variables={"limit": 5, "vip": True, "who": "a"}
    )

    told = say_json("show", workflow.pk, "--case")

    assert told["key"] == f"workflow_process_info-{workflow.pk}"
    assert told == json.loads(say("show", workflow.pk, "--case"))
    assert told["process_info"] | {"ts": 0} == {
        "last_executed_step": "validate_order",
        "last_executed_comp_name": "validate_order",
        "pend_exec_path": "",
        "ts": 0,
        "is_complete": False,
        "process_variables": [
            {"name": "limit", "value": 5, "type": "LONG"},
            {"name": "vip", "value": True, "type": "BOOLEAN"},
            {"name": "who", "value": "a", "type": "STRING"},
        ],
        "exec_paths": [
            {
                "name": ".",
                "status": "started",
                "step": "charge",
                "unit_response_type": None,
                "pend_workbasket": "",
                "prev_pend_workbasket": "",
            }
        ],
        "ticket": "",
    }
    assert told["process_info"]["ts"] == pytest.approx(timezone.now().timestamp() * 1000, abs=60_000)


@pytest.mark.parametrize(
    ("step", "response", "basket"),
    [
        (pended("fraud-review"), "ok_pend", "fraud-review"),
        (pended("desk", kind="step", response="ok_pend_eor"), "ok_pend_eor", "desk"),
        (pended("", kind="sleep", wake_at=ago(-60)), "ok_pend", "workflow_pause"),
        (pended("", kind="step", wake_at=ago(-60)), "error_pend", "retry_queue"),
    ],
)
def test_where_a_paused_case_pends(step, response, basket):
    """S3-032, S3-036, S3-088: pend_exec_path says where to resume, the response how."""
    workflow = put(Workflow(name="three", status="paused", running_at=ago(60), wake_at=ago(-60)), step)

    found = case(workflow.pk)["process_info"]

    assert found["pend_exec_path"] == "."
    assert only(found, *SHOWN[1:]) == [
        {"status": "completed", "step": step.name, "unit_response_type": response, "pend_workbasket": basket}
    ]


def test_a_path_has_states_of_its_own_and_two_in_the_document():
    """S3-101, C30: running is started; pended, joined, done and crashed are completed, dropped is not told."""
    workflow = running(
        live_worker(),
        parallel("route_1", ["1", "2", "3", "4"]),
        opened("step_a", path=".route_1.1."),
        pended("desk", path=".route_1.2."),
        done("step_c", path=".route_1.3."),
        opened("step_d", path=".route_1.4.", status="dropped"),
    )
    alive = case(workflow.pk)["process_info"]
    Workflow.objects.filter(pk=workflow.pk).update(worker=None, wake_at=ago(0))

    crashed = case(workflow.pk)["process_info"]

    assert [(path["name"], path["status"], path["pend_workbasket"]) for path in alive["exec_paths"]] == [
        (".", "started", ""),
        (".route_1.1.", "started", ""),
        (".route_1.2.", "completed", "desk"),
        (".route_1.3.", "completed", ""),
    ]
    assert [(path["status"], path["pend_workbasket"]) for path in crashed["exec_paths"]] == [
        ("completed", "workflow_temp_hold"),
        ("completed", "workflow_temp_hold"),
        ("completed", "desk"),
        ("completed", ""),
    ]


def test_a_complete_case_is_skipped():
    """S3-027, S3-034."""
    workflow = put(Workflow(name="three", status="completed", finished_at=ago(1)), done("s0"))

    assert case(workflow.pk)["process_info"]["is_complete"] is True
    assert check(workflow.pk).reason == "already_terminal"


def test_the_case_command_knows_when_there_is_none():
    assert "There is no workflow" in refused(3, "show", "0190f3a1-0000-7000-8000-000000000000", "--case")


# -- orphans ----------------------------------------------------------------------------------------------------------


def orphan(**changes) -> dict:
    return document(ts=0) | changes


def test_a_case_with_all_four_signs_is_orphaned():
    """S3-064..S3-068."""
    assert is_orphaned(orphan(), QUIET)


@pytest.mark.parametrize(
    "unlike",
    [
        {"pend_exec_path": "."},
        {"is_complete": True},
        {"ts": 1},
        {"ts": None},
        {"exec_paths": []},
    ],
)
def test_three_signs_are_not_enough(unlike):
    """S3-064..S3-070: one missing sign, and it is not."""
    assert not is_orphaned(orphan(**unlike), QUIET)


def test_no_document_is_no_orphan():
    """S3-069."""
    assert not is_orphaned(None, QUIET)


def test_a_long_step_looks_orphaned_and_is_left_alone():
    """S3-033, C2, C36: the age of the last save is information, a dead worker is proof."""
    workflow = running(live_worker(), opened("slow"))
    saved = timezone.now() - timedelta(minutes=6)

    assert is_orphaned(case_of(workflow, list(workflow.steps.all()), saved), int(timezone.now().timestamp() * 1000))
    assert check(workflow.pk).reason == "not_needed"


# -- modes ------------------------------------------------------------------------------------------------------------


def test_one_case_is_recovered_on_demand():
    """S3-077, S3-079."""
    workflow = running(dead_worker(), opened("s0"))

    assert say_json("recover", workflow.pk)["worker_id"] is None


def test_inspecting_first_shows_paths_and_plan_and_changes_nothing():
    """S3-080, S3-081, S3-121."""
    workflow = running(dead_worker(), opened("s0"))

    said = say("plan", workflow.pk), say("check", workflow.pk), say("show", workflow.pk, "--case")

    workflow.refresh_from_db()
    assert "resumes at s0" in said[0]
    assert "stale_running" in said[1]
    assert "pend_exec_path" in said[2]
    assert (workflow.fence, workflow.seq) == (0, 1)


def test_a_case_that_needs_a_person_says_so_first():
    """S3-082, C40."""
    workflow = running(dead_worker(), opened("pay", on_crash="hold"))

    assert say_json("check", workflow.pk)["requires_manual_intervention"] is True


def test_recovering_with_new_variables():
    """S3-083."""
    workflow = running(dead_worker(), variables={"limit": 5, "note": "old"})

    say("recover", workflow.pk, "--variables", '{"limit": 7, "who": "otto"}')

    workflow.refresh_from_db()
    assert workflow.variables == {"limit": 7, "note": "old", "who": "otto"}


def test_a_variable_keeps_its_type():
    """S3-083: determineType."""
    workflow = running(dead_worker(), variables={"limit": 5})

    with pytest.raises(BadValue, match="limit is a LONG"):
        acts.recover(workflow.pk, variables={"limit": "seven"}, **OTTO)

    workflow.refresh_from_db()
    assert (workflow.variables, workflow.worker_id is None) == ({"limit": 5}, False)


@pytest.mark.parametrize(
    ("value", "word"), [(True, "BOOLEAN"), (1, "LONG"), (1.5, "DOUBLE"), ("x", "STRING"), ([1], "JSON")]
)
def test_types_have_the_words_of_the_seed(value, word):
    """S3-083, S3-086."""
    assert type_of(value) == word


# -- edge cases -------------------------------------------------------------------------------------------------------


def test_an_external_call_that_was_not_recorded_keeps_its_key():
    """S3-117, C21: the receiver can tell the second call from a new one."""
    rehearsal = rehearse("keyed")
    rehearsal.crash_after(0)
    first = list(flows.calls)
    flows.calls.clear()

    rehearsal.to_end()

    assert first == flows.calls
    assert len(flows.calls) == 1


def test_a_corrupt_case_is_refused_and_named():
    """S3-078, S3-118, S3-120."""
    workflow = running(dead_worker(), done("s1", 1))

    sentence = refused(1, "recover", workflow.pk)

    assert "cannot be repaired" in sentence
    assert "reopen it with a ticket" in sentence

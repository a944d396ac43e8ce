"""Operators' acts: once, fenced, audited; whichever door they come through."""

import threading
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import DataError, connection, transaction
from django.utils import timezone

from recovery import acts
from recovery.models import AuditEntry, Recovery
from tests.recovery.world import ago, dead_worker, done, live_worker, opened, pended, put, running, silent_worker
from tests.workflows.test_command_line import refused, say
from workflows.errors import BadValue, NotFound, Refused
from workflows.models import Status, Step, Worker, Workflow
from workflows.testing import Rehearsal, rehearse

pytestmark = pytest.mark.django_db
OTTO = {"by": "otto", "via": "page", "reason": "because"}


def queued(**fields) -> Workflow:
    return put(Workflow(**{"name": "three", "key": "A1", "status": "queued", "wake_at": ago(1)} | fields))


def failed(*steps: Step, **fields) -> Workflow:
    return put(Workflow(name="three", key="A1", status="failed", finished_at=ago(1), error={}, **fields), *steps)


def entry() -> AuditEntry:
    return AuditEntry.objects.get()


# -- every act ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "make", "status"),
    [
        (acts.fail, queued, "failed"),
        (acts.cancel, queued, "cancelled"),
        (acts.pause, queued, "paused"),
        (acts.revive, failed, "queued"),
        (acts.recover, failed, "queued"),
        (acts.discard, failed, "failed"),
    ],
)
def test_an_act_and_its_audit_entry(act, make, status):
    """I10: who, what, why, before and after."""
    workflow = make()
    before = workflow.status

    assert act(workflow.pk, **OTTO).changed

    workflow.refresh_from_db()
    assert workflow.status == status
    noted = entry()
    assert (noted.actor, noted.via, noted.act, noted.reason) == ("otto", "page", act.__name__, "because")
    assert (noted.subject, noted.subject_id, noted.subject_name) == ("workflow", str(workflow.pk), "three A1")
    assert (noted.before["status"], noted.after["status"]) == (before, status)
    assert noted.refused == ""


@pytest.mark.parametrize(
    ("act", "make"),
    [(acts.fail, queued), (acts.cancel, queued), (acts.pause, queued), (acts.discard, failed), (acts.recover, failed)],
)
def test_a_double_click_is_one_act(act, make):
    """I10, S0-006."""
    workflow = make()
    act(workflow.pk, fence=workflow.fence, **OTTO)
    workflow.refresh_from_db()
    events = workflow.events.count()

    again = act(workflow.pk, fence=0, **OTTO)

    assert not again.changed
    assert again.sentence.endswith("already; nothing was done.")
    assert workflow.events.count() == events
    assert AuditEntry.objects.count() == 1


@pytest.mark.parametrize("act", [acts.cancel, acts.pause])
def test_asking_a_worker_twice_asks_once(act):
    workflow = running(live_worker())

    said = act(workflow.pk, **OTTO).sentence
    again = act(workflow.pk, **OTTO)

    assert said.startswith(f"{workflow}: its worker is asked to")
    assert not again.changed
    assert entry().after["asked"] == act.__name__


@pytest.mark.parametrize("act", [acts.fail, acts.cancel, acts.pause, acts.resume, acts.recover, acts.revive])
def test_whoever_looked_too_early_is_refused_with_the_present_truth(act):
    workflow = running(live_worker(), fence=8)

    with pytest.raises(Refused, match="has changed since you looked, it is running on host-1:4711 now"):
        act(workflow.pk, fence=7, **OTTO)

    workflow.refresh_from_db()
    assert (workflow.fence, workflow.asked) == (8, None)
    assert "has changed since you looked" in entry().refused


def test_a_refusal_is_audited_and_nothing_else_is_left():
    workflow = put(Workflow(name="three", status="completed", finished_at=ago(1)))

    with pytest.raises(Refused):
        acts.fail(workflow.pk, **OTTO)

    assert entry().refused.startswith("Cannot fail three")
    assert (entry().before, entry().after) == (None, None)
    assert workflow.events.count() == 1


@pytest.mark.parametrize("reason", ["a\0b", "half \udcff", "x" * 501])
def test_a_reason_that_cannot_be_stored_is_refused_and_audited(reason):
    workflow = queued()

    with pytest.raises(BadValue):
        acts.fail(workflow.pk, by="otto", via="page", reason=reason)

    assert entry().refused.startswith("The reason")
    assert entry().reason


def test_an_act_upon_nothing():
    with pytest.raises(NotFound):
        acts.fail(uuid4(), **OTTO)


def test_the_audit_cannot_be_changed():
    acts.fail(queued().pk, **OTTO)

    with pytest.raises(Exception, match="append-only"), connection.cursor() as cursor:
        cursor.execute("UPDATE rekindle_recovery_auditentry SET actor = 'somebody else'")


def test_an_act_that_cannot_be_audited_is_not_done():
    workflow = queued()

    with pytest.raises(DataError), transaction.atomic():
        acts.fail(workflow.pk, by="otto", via="a door without a name")

    workflow.refresh_from_db()
    assert workflow.status == Status.QUEUED


@pytest.mark.django_db(transaction=True)
def test_of_two_operators_at_once_one_acts():
    """I10; faults: two operators at once."""
    workflow = failed()
    gate = threading.Barrier(4)
    said: list[acts.Done] = []

    def act() -> None:
        gate.wait()
        said.append(acts.recover(workflow.pk, fence=0, **OTTO))
        connection.close()

    threads = [threading.Thread(target=act) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(done.changed for done in said) == [False, False, False, True]
    assert workflow.events.filter(type="workflow.revived").count() == 1
    assert (AuditEntry.objects.count(), Recovery.objects.count()) == (1, 1)


# -- recover ----------------------------------------------------------------------------------------------------------


def test_what_a_dead_worker_held_is_due_at_once():
    """S3-077."""
    worker = dead_worker()
    workflow = running(worker, done("s0"), opened("s1", 1), recovery_attempts=1)

    acts.recover(workflow.pk, **OTTO)

    workflow.refresh_from_db()
    assert (workflow.worker, workflow.status) == (None, Status.RUNNING)
    assert workflow.wake_at <= timezone.now()  # not after the half minute of an automatic one


def test_whoever_recovers_by_hand_may_have_a_long_name():
    """Any user model: an address has up to 254 characters, and keeps nobody from acting."""
    held = running(dead_worker(), done("one"))

    acts.recover(held.pk, **OTTO | {"by": "n" * 254})

    assert (Recovery.objects.get().actor, entry().actor[:3]) == ("n" * 200, "nnn")


def test_a_manual_recovery_is_recorded():
    """S0-059: manual."""
    worker = dead_worker(60)
    workflow = running(worker, done("s0"), opened("s1", 1), key="A1")

    acts.recover(workflow.pk, **OTTO)

    rescue = Recovery.objects.get()
    assert (rescue.reason, rescue.detected_by, rescue.actor, rescue.note) == ("manual", "operator", "otto", "because")
    assert (rescue.worker, rescue.worker_name) == (worker.pk, "host-2:812")
    assert (rescue.step, rescue.in_step, rescue.attempt, rescue.max_attempts) == ("s1", True, 1, 3)
    (again,) = rescue.plan["again"]
    assert again.items() >= {"path": ".", "name": "s1", "idempotent": False, "uncertain": True}.items()
    assert (rescue.outcome, rescue.workflow_name, rescue.workflow_key) == ("pending", "three", "A1")
    assert rescue.seconds_to_detect == pytest.approx(60, abs=10)


def test_a_live_worker_keeps_what_it_holds():
    workflow = running(live_worker(), opened("s0"))

    with pytest.raises(Refused, match="its worker host-1:4711 is alive"):
        acts.recover(workflow.pk, **OTTO)

    workflow.refresh_from_db()
    assert workflow.worker is not None
    assert not Recovery.objects.exists()


def test_a_silent_worker_is_ended_first():
    """S0-083: running for 60 s with nobody alive."""
    worker = silent_worker(60)
    workflow = running(worker)

    acts.recover(workflow.pk, **OTTO)

    worker.refresh_from_db()
    workflow.refresh_from_db()
    assert (worker.ended_why, workflow.worker) == ("silent", None)


def test_a_worker_without_its_lock_is_looked_at_twice(settings):
    settings.REKINDLE = settings.REKINDLE | {"DEATH_GAP": 0.01}
    worker = Worker.objects.create(host="host-3", pid=9, ended_why="")
    workflow = running(worker)

    acts.recover(workflow.pk, **OTTO)

    worker.refresh_from_db()
    assert worker.ended_at is not None


def test_an_orphan_that_waits_begins_now_and_stays_one_rescue():
    workflow = running(None, wake_at=timezone.now() + timedelta(minutes=2))
    rescue = Recovery.objects.create(
        workflow_id=workflow.pk,
        workflow_name="three",
        fence=0,
        finding="dead_worker",
        reason="stale_detection",
        detected_by="worker",
        attempt=3,
        max_attempts=3,
    )

    acts.recover(workflow.pk, **OTTO)

    workflow.refresh_from_db()
    rescue.refresh_from_db()
    assert workflow.wake_at <= timezone.now()
    assert (Recovery.objects.count(), rescue.actor, rescue.reason) == (1, "otto", "stale_detection")


def test_a_failed_one_is_revived_and_runs_to_its_end():
    rehearsal = rehearse("flaky", fails=1, tries=1)
    assert rehearsal.to_end().status == Status.FAILED

    acts.recover(rehearsal.workflow.pk, **OTTO)

    assert rehearsal.to_end().output == "done at 2"
    assert Recovery.objects.get().finding == "by_hand"


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({"pause_reason": "sleep", "wake_at": ago(-3600)}, "it waits until"),
        ({"pause_reason": "suspended"}, "it is suspended; resume it"),
        ({"pause_reason": "pend", "basket": "desk"}, "it waits in desk; resume it"),
        ({"pause_reason": "blocked", "wake_at": ago(-30)}, "it goes on by itself once a worker has code that fits"),
    ],
)
def test_what_waits_is_not_recovered_and_says_what_to_do(fields, hint):
    workflow = put(Workflow(name="three", status="paused", **fields))

    with pytest.raises(Refused) as refusal:
        acts.recover(workflow.pk, **OTTO)

    assert hint in str(refusal.value)


def test_at_the_maximum_only_an_operator_tries_once_more():
    """C7, C52."""
    workflow = running(dead_worker(), recovery_attempts=3)
    assert "By hand only: it was recovered 3 of 3 times without progress" in say("plan", workflow.pk)

    acts.recover(workflow.pk, **OTTO)

    workflow.refresh_from_db()
    assert (workflow.status, workflow.worker) == ("running", None)


def test_the_counter_is_reset_by_hand():
    workflow = running(dead_worker(), recovery_attempts=3)

    say("recover", workflow.pk, "--reset-attempts")

    workflow.refresh_from_db()
    assert workflow.recovery_attempts == 0
    assert workflow.events.get(type="recovery.reset").data["was"] == 3


def test_changed_variables_are_in_the_audit_with_what_they_were():
    workflow = running(dead_worker(), variables={"limit": 5, "secret": "s"})

    acts.recover(workflow.pk, variables={"limit": 7}, **OTTO)

    assert (entry().before["variables"], entry().after["variables"]) == ({"limit": 5}, {"limit": 7})


def test_a_cancellation_its_dead_worker_was_asked_for_is_carried_out():
    workflow = running(dead_worker(), asked={"what": "cancel", "by": "otto", "at": "", "reason": ""})

    acts.recover(workflow.pk, **OTTO)

    workflow.refresh_from_db()
    assert workflow.status == Status.CANCELLED
    assert Recovery.objects.get().outcome == "cancelled"


# -- a new generation -------------------------------------------------------------------------------------------------


def test_from_a_chosen_step_is_a_new_generation_and_audited():
    """C39."""
    rehearsal = rehearse("three")
    rehearsal.to_end()

    done = acts.rerun_from(rehearsal.workflow.pk, "s1", **OTTO)

    assert (done.workflow.generation, done.workflow.previous) == (2, rehearsal.workflow.pk)
    assert (entry().act, entry().subject_id) == ("rerun_from", str(rehearsal.workflow.pk))
    assert entry().after["id"] == str(done.workflow.pk)


def test_a_double_click_makes_one_generation():
    rehearsal = rehearse("three")
    fence = rehearsal.to_end().fence
    acts.rerun_from(rehearsal.workflow.pk, "s1", fence=fence, **OTTO)

    with pytest.raises(Refused):
        acts.rerun_from(rehearsal.workflow.pk, "s1", fence=fence, **OTTO)

    assert Workflow.objects.filter(previous=rehearsal.workflow.pk).count() == 1


def test_a_corrupt_case_is_failed_and_reopened_with_a_ticket():
    """S3-119, S3-122, C39."""
    workflow = running(dead_worker(), done("s1", 1), name="jump")
    acts.fail(workflow.pk, **OTTO)

    say("reopen", workflow.pk, "--ticket", "stop", "--reason", "cannot be repaired")

    reopened = Workflow.objects.get(previous=workflow.pk)
    assert reopened.ticket == "stop"
    assert Rehearsal(reopened).to_end().output == "stopped after cleanup"
    assert AuditEntry.objects.get(act="reopen").via == "cli"


# -- resume, and the command line ---------------------------------------------------------------------------------


def test_resuming_one_pend_with_a_result_and_variables():
    rehearsal = rehearse("review")
    rehearsal.turn()

    acts.resume(rehearsal.workflow.pk, basket="fraud-review", result="fine", variables={"limit": 9}, **OTTO)

    assert rehearsal.to_end().output == ["fine", 9]
    assert entry().after["variables"] == {"limit": 9}


def test_a_pend_is_answered_once():
    workflow = put(Workflow(name="review", status="paused", pause_reason="pend", basket="a"), pended("a"))
    acts.resume(workflow.pk, basket="a", **OTTO)

    with pytest.raises(Refused):
        acts.resume(workflow.pk, basket="a", **OTTO)


@pytest.mark.parametrize("verb", ["fail", "cancel", "pause"])
def test_the_command_line_is_audited_too(verb):
    workflow = queued()

    say(verb, workflow.pk, "--reason", "late at night")

    assert (entry().act, entry().via, entry().reason) == (verb, "cli", "late at night")
    assert entry().actor.startswith("cli:")


def test_a_refusal_on_the_command_line_is_audited():
    workflow = running(live_worker())

    refused(1, "recover", workflow.pk)

    assert (entry().act, entry().via) == ("recover", "cli")
    assert "is alive" in entry().refused


# -- moving ---------------------------------------------------------------------------------------------------------


def waiting_in(basket: str = "fraud-review", **fields) -> Workflow:
    row = {"name": "three", "key": "A1", "status": "paused", "pause_reason": "pend", "basket": basket} | fields
    return put(Workflow(**row), pended(basket))


def test_a_move_is_audited_with_both_baskets():
    workflow = waiting_in()

    done = acts.move_to(workflow.pk, "stock", fence=workflow.fence, **OTTO)

    assert (done.changed, done.sentence) == (True, "three A1 waits in stock.")
    assert (entry().act, entry().before["basket"], entry().after["basket"]) == ("move", "fraud-review", "stock")
    assert "pends" not in entry().after  # the row says it all


def test_a_double_click_moves_once_and_who_was_slower_is_told():
    workflow = waiting_in()
    acts.move_to(workflow.pk, "stock", basket="fraud-review", **OTTO)

    again = acts.move_to(workflow.pk, "stock", basket="fraud-review", **OTTO)
    with pytest.raises(Refused, match="nothing of it waits for a person in fraud-review"):
        acts.move_to(workflow.pk, "sales", basket="fraud-review", **OTTO)

    workflow.refresh_from_db()
    assert (again.changed, workflow.basket) == (False, "stock")
    assert [each.refused != "" for each in AuditEntry.objects.order_by("id")] == [False, True]


def test_whoever_saw_an_older_state_moves_nothing():
    workflow = waiting_in(fence=8)

    with pytest.raises(Refused, match="has changed since you looked"):
        acts.move_to(workflow.pk, "stock", fence=7, **OTTO)

    workflow.refresh_from_db()
    assert workflow.basket == "fraud-review"


def test_a_move_of_what_is_asked_to_pause_says_where_it_waits():
    workflow = running(
        live_worker(), pended("fraud-review"), asked={"what": "pause", "by": "x", "at": "", "reason": ""}
    )

    assert acts.move_to(workflow.pk, "stock", **OTTO).sentence.endswith("waits in stock.")
    assert (entry().before["pends"], entry().after["pends"]) == ("fraud-review", "stock")


def test_the_command_line_moves_too():
    workflow = waiting_in()

    said = say("move", str(workflow.pk), "--to", "stock", "--reason", "his work")

    assert "is paused" in said
    assert Step.objects.get(workflow=workflow).basket == "stock"
    assert (entry().via, entry().reason) == ("cli", "his work")

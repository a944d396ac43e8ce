"""Finding the dead and taking over what they held."""

import os
import socket
import time
from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now

from recovery.lookout import Lookout, first_sights
from recovery.models import Recovery
from recovery.rescues import settle
from recovery.sweep import Sweep, sweep_now
from workflows import takeover, verbs
from workflows.claiming import why_not_claimed
from workflows.conf import settings
from workflows.inline import InlineConnection
from workflows.models import Event, Policy, Step, Worker, Workflow
from workflows.supervisor import buried

from .dead import claim_again, claimer, die, get_on, hold, make_due, silence, worker

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def never_seen_before():
    """No server is known to this process."""
    first_sights.clear()


def diary(workflow):
    return list(Event.objects.filter(workflow=workflow).order_by("seq").values_list("type", flat=True))


def test_a_lock_that_is_free_at_one_look_says_nothing_yet():
    """Design 5.2."""
    workflow = hold()

    Sweep("worker").once()

    workflow.refresh_from_db()
    assert workflow.worker.ended_at is None


def test_a_lock_that_is_free_at_two_looks_is_a_death():
    """Design 5.2, S0-004, S0-005."""
    workflow = hold()

    done = sweep_now("operator")

    workflow.refresh_from_db()
    assert done["released"] == done["found"] == 1
    assert (workflow.status, workflow.worker, workflow.fence) == ("running", None, 2)
    assert diary(workflow)[-1] == "workflow.orphaned"
    assert Worker.objects.get().ended_why == "died"


def test_a_heartbeat_between_the_looks_is_a_sign_of_life():
    """Design 5.2."""
    workflow = hold()
    lookout = Lookout()
    lookout.look()
    lookout.suspects = {number: (since - 10, beat) for number, (since, beat) in lookout.suspects.items()}
    Worker.objects.update(heartbeat_at=Now() + timedelta(milliseconds=1))

    assert lookout.look() == {}
    workflow.refresh_from_db()
    assert workflow.worker.ended_at is None


def beats(number):
    Worker.objects.filter(pk=number).update(heartbeat_at=Now() + timedelta(milliseconds=1))


def locks_again(number):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock('rekindle_worker'::regclass::oid::int, %s)", [number])


@pytest.mark.parametrize(("why", "shows"), [("died", beats), ("died", locks_again), ("silent", beats)])
def test_a_worker_that_shows_itself_while_it_is_being_ended_lives_on(monkeypatch, why, shows):
    """Design 5.3: under the row's lock it looks again."""
    number = hold().worker_id
    if why == "silent":
        silence(Worker.objects.get())
    monkeypatch.setattr(Lookout, "look", lambda _: {number: why})

    def end_worker(*given, **more):
        shows(number)
        return takeover.end_worker(*given, **more)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr("recovery.lookout.end_worker", end_worker)
        assert Lookout().end_dead() == []

    assert Worker.objects.get().ended_at is None


def test_whoever_holds_its_lock_lives():
    workflow = hold()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock('rekindle_worker'::regclass::oid::int, %s)", [workflow.worker_id])
        try:
            assert sweep_now("operator")["found"] == 0
        finally:
            cursor.execute("SELECT pg_advisory_unlock_all()")


def test_a_silent_worker_is_dead_although_it_holds_its_lock():
    """S0-032, C1: at 30 s; a frozen host holds its lock."""
    workflow = hold()
    silence(workflow.worker)

    sweep_now("worker")

    workflow.refresh_from_db()
    assert workflow.worker is None
    recovery = Recovery.objects.get()
    assert (recovery.finding, recovery.reason) == ("silent_worker", "stale_detection")
    assert recovery.seconds_to_detect >= 30


def test_a_silence_that_ends_between_two_looks_is_none():
    """Faults: the database was away for longer than the threshold. Nobody could beat; now they do."""
    number = hold(by=worker(pooled=True)).worker_id
    silence(Worker.objects.get())
    lookout = Lookout()
    assert lookout.look() == {}
    lookout.suspects = {number: (since - 10, beat) for number, (since, beat) in lookout.suspects.items()}

    beats(number)

    assert (lookout.look(), lookout.suspects) == ({}, {})


def test_who_could_not_look_for_a_while_waits_for_others_to_come_back(settings):
    """Faults: 15 s outage; without a restart the server itself knows nothing of it."""
    settings.REKINDLE = settings.REKINDLE | {"RESTART_GRACE": 0.5, "DEATH_GAP": 0}
    number = hold(by=worker(pooled=True)).worker_id
    lookout = Lookout()
    lookout.look()
    silence(Worker.objects.get())
    lookout.looked -= 30

    assert lookout.look() == {}

    lookout.server_seen -= 0.5
    assert lookout.look() == {number: "silent"}


def test_after_a_restart_silence_says_nothing_either_before_they_could_come_back(settings):
    """Design 5.2: however long the database was away."""
    settings.REKINDLE = settings.REKINDLE | {"RESTART_GRACE": 3600}
    hold(by=worker(incarnation="before/00000001"))
    silence(Worker.objects.get())

    assert sweep_now("operator")["found"] == 0

    settings.REKINDLE = settings.REKINDLE | {"RESTART_GRACE": 0}
    assert sweep_now("operator")["released"] == 1


def test_what_the_dead_last_wrote_is_a_sign_of_life():
    """S0-058: whoever never saw it alive knows more than its last heartbeat."""
    workflow = hold()
    silence(workflow.worker, seconds=9)
    wrote = Event.objects.filter(workflow=workflow).order_by("seq").last()

    sweep_now("start-up")

    recovery = Recovery.objects.get()
    assert recovery.last_seen_at == wrote.at
    assert recovery.seconds_to_detect == (recovery.detected_at - wrote.at).total_seconds()


def test_what_others_wrote_is_none():
    workflow = hold()
    silence(workflow.worker, seconds=9)
    verbs.pause(workflow.pk, by="ann")

    sweep_now("start-up")

    assert Recovery.objects.get().last_seen_at == Worker.objects.get().heartbeat_at


def test_a_parent_that_saw_its_end_knows_best(monkeypatch):
    """S0-058: also of one that had long been busy with one step and wrote nothing."""
    workflow = hold(by=worker(host=socket.gethostname()))
    wrote = Event.objects.filter(workflow=workflow).order_by("seq").last()
    monkeypatch.setitem(buried, os.getpid(), time.monotonic())

    sweep_now("start-up")

    assert Recovery.objects.get().last_seen_at > wrote.at


def test_behind_a_pooler_a_free_lock_means_nothing():
    """Design 5.2."""
    workflow = hold(by=worker(pooled=True))

    assert sweep_now("operator")["found"] == 0
    silence(workflow.worker)
    assert sweep_now("operator")["released"] == 1


def test_after_a_restart_of_the_server_nobody_is_dead_before_they_could_come_back(settings):
    """Design 5.2: a lock taken on another incarnation says nothing yet."""
    settings.REKINDLE = settings.REKINDLE | {"RESTART_GRACE": 3600}
    workflow = hold(by=worker(incarnation="before/00000001"))

    assert sweep_now("operator")["found"] == 0

    settings.REKINDLE = settings.REKINDLE | {"RESTART_GRACE": 0}
    assert sweep_now("operator")["released"] == 1
    workflow.refresh_from_db()
    assert workflow.recovery_attempts == 0


@pytest.mark.parametrize(
    ("server", "incarnation"),
    [("the primary before", ""), ("", "before/0000000F")],
    ids=["who saw the old one", "who looks for the first time"],
)
def test_after_a_promotion_nobody_is_dead_before_they_could_come_back(settings, server, incarnation):
    """Design 5.2; faults: replica promoted. It has run for long, so the grace counts from the first sight of it."""
    settings.REKINDLE = settings.REKINDLE | {"RESTART_GRACE": 0.5, "DEATH_GAP": 0}
    number = hold(by=worker(incarnation=incarnation)).worker_id
    lookout = Lookout(server=server)

    assert lookout.look() == {}

    lookout.server_seen -= 0.5
    assert lookout.look() == {number: "died"}


@pytest.mark.parametrize("blind", [{"failed": True}, {"server": "the primary before"}], ids=["away", "failed over"])
def test_who_could_not_look_himself_calls_nobody_silent_at_once(settings, blind):
    """Faults: an outage without a restart, a failover that takes long: whoever is back first waits for the others."""
    settings.REKINDLE = settings.REKINDLE | {"RESTART_GRACE": 0.5, "DEATH_GAP": 0}
    held = hold()
    silence(held.worker)
    lookout = Lookout(**blind)

    assert lookout.look() == {}

    lookout.server_seen -= 0.5
    assert lookout.look() == {held.worker_id: "silent"}


def test_a_look_that_could_not_end_the_dead_was_none(monkeypatch, settings):
    """Faults: a database that takes nothing: when it does again, the others are heard first."""
    settings.REKINDLE = settings.REKINDLE | {"RESTART_GRACE": 0.5, "DEATH_GAP": 0}
    silence(hold().worker)
    lookout = Lookout()
    monkeypatch.setattr("recovery.lookout.end_worker", lambda *_, **__: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        lookout.end_dead()

    assert lookout.look() == {}


def test_a_sweep_that_is_asked_for_right_after_a_promotion_ends_nobody(settings):
    """Faults: replica promoted; the scheduled task has no memory of the server before."""
    settings.REKINDLE = settings.REKINDLE | {"RESTART_GRACE": 0.5, "DEATH_GAP": 0.01}
    hold(by=worker(incarnation="before/0000000F"))

    assert sweep_now("scheduled task")["found"] == 0
    assert Worker.objects.get().ended_at is None


def test_the_record_of_a_rescue_is_complete():
    """S0-008, S0-051, S0-058."""
    workflow = hold()
    Step.objects.create(workflow=workflow, position=0, name="load", status="done", ended_at=Now())
    Step.objects.create(workflow=workflow, position=1, name="charge", status="open", idempotent=False)
    dead = workflow.worker

    sweep_now("scheduled task")

    recovery = Recovery.objects.get()
    assert (recovery.workflow_id, recovery.workflow_name) == (workflow.pk, "three")
    assert (recovery.finding, recovery.reason, recovery.detected_by) == (
        "dead_worker",
        "infrastructure_restart",
        "scheduled task",
    )
    assert (recovery.worker, recovery.worker_name) == (dead.pk, str(dead))
    assert (recovery.step, recovery.in_step) == ("charge", True)
    assert (recovery.attempt, recovery.max_attempts, recovery.outcome) == (1, 3, "pending")
    assert recovery.plan["kept"] == 1
    assert recovery.plan["again"] == [
        {"path": ".", "position": 1, "name": "charge", "idempotent": False, "uncertain": True}
    ]
    assert recovery.due_at is not None


def test_progress_after_it_makes_a_rescue_a_success():
    """S0-057, C6."""
    workflow = hold()
    sweep_now("worker")
    claim_again(workflow)
    settle()
    assert Recovery.objects.get().resumed_at is not None
    assert Recovery.objects.get().outcome == "pending"

    get_on(workflow)
    settle()

    recovery = Recovery.objects.get()
    assert recovery.outcome == "recovered"
    assert recovery.seconds_to_resume >= 0


def test_whoever_is_rescued_twice_has_died_again():
    workflow = hold()
    sweep_now("worker")
    claim_again(workflow)

    sweep_now("worker")

    assert list(Recovery.objects.order_by("id").values_list("outcome", "attempt")) == [
        ("died_again", 1),
        ("pending", 2),
    ]


def test_three_recoveries_and_the_fourth_death_fails_it():
    """S0-044..S0-046, C7, I4: the sweep, not the claim, fails it."""
    workflow = hold()
    Step.objects.create(workflow=workflow, position=0, name="load", status="done", ended_at=Now())
    Step.objects.create(workflow=workflow, position=1, name="kills", status="open")
    for attempt in (1, 2, 3):
        sweep_now("worker")
        claim_again(workflow)
        assert (workflow.status, workflow.recovery_attempts) == ("running", attempt)

    done = sweep_now("worker")

    workflow.refresh_from_db()
    assert done["gave_up"] == 1
    assert workflow.status == "failed"
    assert workflow.error["message"] == "Workflow recovery failed after 3 attempts"
    assert workflow.error["open"] == ["kills"]
    assert workflow.error["completed_steps"] == ["load"]
    assert Recovery.objects.order_by("id").last().outcome == "gave_up"


def test_the_delays_are_a_moment_then_30_s_then_2_min():
    """C60, S0-035."""
    workflow = hold()
    waits = []
    for _ in range(3):
        sweep_now("worker")
        event = Event.objects.filter(workflow=workflow, type="workflow.orphaned").order_by("seq").last()
        waits.append(event.data["delay"])
        claim_again(workflow)

    assert waits == [0.1, 30, 120]


def test_a_cancellation_that_was_asked_of_the_dead_is_carried_out():
    """I10."""
    workflow = hold(asked={"what": "cancel", "by": "ann"})

    assert sweep_now("worker")["cancelled"] == 1

    workflow.refresh_from_db()
    assert (workflow.status, workflow.asked) == ("cancelled", None)
    assert Recovery.objects.get().outcome == "cancelled"


@pytest.mark.parametrize(("mode", "records"), [("observe", ["observed"]), ("off", [])])
@pytest.mark.parametrize("by", ["settings", "everybody's policy", "its own policy"])
def test_a_mode_that_does_not_enforce_leaves_it_held(settings, mode, records, by):
    """C29, S3-129, S4-120, design 5.7: detect, record, show, do nothing; once."""
    workflow = hold()
    if by == "settings":
        settings.REKINDLE = settings.REKINDLE | {"MODE": mode}
    else:
        Policy.objects.create(name="*" if by == "everybody's policy" else "three", mode=mode)

    for _ in range(2):
        sweep_now("worker")

    workflow.refresh_from_db()
    assert workflow.worker.ended_at is not None
    assert list(Recovery.objects.values_list("outcome", flat=True)) == records


def test_switching_to_enforce_recovers_what_was_only_observed():
    """S4-122."""
    workflow = hold()
    policy = Policy.objects.create(name="three", mode="observe")
    sweep_now("worker")

    policy.delete()
    sweep_now("worker")

    workflow.refresh_from_db()
    assert workflow.worker is None
    assert Recovery.objects.get().outcome == "pending"


def test_a_policy_can_delay_a_take_over():
    """S0-081, design 5.3: until then it stays held, recorded and shown."""
    workflow = hold()
    policy = Policy.objects.create(name="three", stale_after=600)

    sweep_now("worker")
    workflow.refresh_from_db()
    assert workflow.worker is not None
    assert Recovery.objects.get().outcome == "pending"

    Policy.objects.filter(pk=policy.pk).update(stale_after=0)
    assert sweep_now("worker")["released"] == 1
    assert Recovery.objects.count() == 1


def test_a_sweep_that_died_after_ending_a_worker_is_finished_by_the_next():
    """Faults: a sweep killed after ending a worker; a claim that commits after its worker was declared dead."""
    workflow = hold()
    die(workflow.worker)

    assert sweep_now("worker")["released"] == 1


@pytest.fixture
def small_herds(monkeypatch):
    for where in ("workflows.takeover.BATCH", "recovery.sweep.BATCH"):
        monkeypatch.setattr(where, 10)
    monkeypatch.setattr("workflows.takeover.CROWD", 15)
    holder = worker()

    def herd(name="three", count=35):
        for _ in range(count):
            hold(name, by=holder)

    return herd


def test_a_herd_comes_back_as_fast_as_it_is_claimed(small_herds):
    """Herd control, C22: in bounded batches; no more wait at a time than healthy work can be kept waiting for."""
    small_herds()
    die(Worker.objects.get())

    released = []
    while Workflow.objects.filter(worker__ended_at__isnull=False).exists():
        released.append(sweep_now("scheduled task", crowd_moves=0)["released"])
        assert sweep_now("scheduled task", crowd_moves=0)["found"] == 0  # nobody has claimed any
        Workflow.objects.filter(worker=None).update(status="completed", wake_at=None, finished_at=Now())

    assert released == [20, 15]


def test_a_herd_of_one_name_holds_up_no_other(small_herds):
    """Herd control, I11."""
    small_herds("three")
    small_herds("naps", 5)
    die(Worker.objects.get())

    sweep_now("scheduled task", crowd_moves=0)

    waiting = Workflow.objects.filter(worker=None).values_list("name", flat=True)
    assert Counter(waiting)["naps"] == 5
    assert Counter(waiting)["three"] < 35


def test_what_dies_twice_in_a_row_runs_alone():
    """Design 5.5: the innocent do not pay."""
    workflow = hold()
    sweep_now("worker")
    claim_again(workflow)
    sweep_now("worker")
    make_due(workflow)
    others = claimer(alone=False)

    assert others.claim(10) == []
    assert others.somebody_must_run_alone()
    assert why_not_claimed(InlineConnection(), workflow.pk) == "waits for its turn to run alone"
    assert [held.id for held in claimer(alone=True).claim(1)] == [workflow.pk]


def test_with_one_attempt_even_the_first_recovery_is_alone():
    """Design 5.5: only a death while alone can bring it to the maximum."""
    workflow = hold(max_recovery_attempts=1)
    sweep_now("worker")
    make_due(workflow)
    others = claimer(alone=False)

    assert others.claim(10) == []
    assert [held.id for held in claimer(alone=True).claim(1)] == [workflow.pk]


def test_the_first_recovery_is_in_company():
    workflow = hold()
    sweep_now("worker")
    make_due(workflow)
    others = claimer(alone=False)

    assert not others.somebody_must_run_alone()
    assert [held.id for held in others.claim(10)] == [workflow.pk]


def test_the_default_threshold_is_30_seconds():
    """S0-032, S4-081..S4-083."""
    assert (settings().stale_after, settings().max_recovery_attempts, settings().recovery_delay) == (30, 3, 0.1)


def test_who_died_before_a_promotion_is_found_by_the_scheduler_alone(settings):
    """I7, design 2: with no worker alive nobody else remembers when that was; its process does, from one run to the next."""
    settings.REKINDLE = settings.REKINDLE | {"RESTART_GRACE": 1, "DEATH_GAP": 0.01}
    held = hold(by=worker(incarnation="before/0000000F"))
    silence(held.worker, 3600)

    assert sweep_now("scheduled task")["released"] == 0
    for server in first_sights:
        first_sights[server] -= 1
    assert sweep_now("scheduled task")["released"] == 1

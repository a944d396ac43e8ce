"""The workers page: who lives, what the dead left, what the installation says of itself."""

import os
import socket
from datetime import timedelta

import pytest
from django.utils import timezone

from recovery import killing
from tests.factories import DutyFactory, RecoveryFactory, StepFactory, WorkerFactory, WorkflowFactory
from tests.recovery.world import take_lock

HTMX = {"HX-Request": "true"}


def text(response):
    return response.content.decode()


def alive(**fields):
    worker = WorkerFactory(**fields)
    take_lock(worker)
    return worker


def test_a_live_worker_tells_what_it_is_and_holds(viewer):
    worker = alive(host="host-1", pid=4711, release="r7", slots=8, memory=104857600, lost=1, alone=True)
    WorkflowFactory(running=True, worker=worker)

    page = text(viewer.get("/workers/"))
    [one] = viewer.get("/workers/").context["crew"].alive

    assert one.state == "alive"
    assert (one.row["held"], one.row["lost"], one.row["slots"]) == (1, 1, 8)
    for said in ("host-1:4711", "r7", "100.0", "alone", "0.1.0"):
        assert said in page


def test_late_and_dead_are_said_in_words(viewer):
    now = timezone.now()
    late = alive(heartbeat_at=now - timedelta(seconds=25))
    silent = alive(silent=True)
    unlocked = WorkerFactory()

    states = {one.row["id"]: one.state for one in viewer.get("/workers/").context["crew"].alive}
    page = text(viewer.get("/workers/"))

    assert states == {late.pk: "late", silent.pk: "dead", unlocked.pk: "dead"}
    assert "expected every 10 s" in page
    assert "its lock is free" in page


def test_an_ended_worker_says_what_it_left_and_where_that_went(viewer):
    dead = WorkerFactory(dead=True, host="host-2", pid=812)
    for _ in range(2):
        RecoveryFactory(recovered=True, worker=dead.pk, worker_name=str(dead))
    RecoveryFactory(gave_up=True, worker=dead.pk, worker_name=str(dead))
    WorkerFactory(ended=True)

    page = text(viewer.get("/workers/"))

    assert 'Held 3, 2 running again in 1.4 s, <span class="down">1 given up</span>' in page
    assert "Died" in page
    assert "Stopped" in page


def test_duties_say_when_they_ran_and_what_they_found(viewer):
    DutyFactory(name="sweep", found=3, recovered=2, failed=1)
    DutyFactory(name="wake", began_at=timezone.now() - timedelta(minutes=9))
    DutyFactory(name="alerts", error="OperationalError: away")

    duties = {duty.row["name"]: duty for duty in viewer.get("/workers/").context["crew"].duties}

    assert duties["sweep"].word == "In time"
    assert (duties["wake"].word, round(duties["wake"].lag / 60)) == ("Overdue", 8)
    assert duties["alerts"].word == "Failed"
    assert duties["retention"].word == "Never ran"
    assert "OperationalError: away" in text(viewer.get("/workers/"))


def test_mixed_versions_and_releases_are_a_warning(viewer):
    alive(version="0.1.0", release="a")
    alive(version="0.2.0", release="a")

    page = text(viewer.get("/workers/"))

    assert "The live workers run different versions: 0.1.0, 0.2.0." in page
    assert "different releases" not in page


def test_every_setting_says_where_it_came_from(viewer, settings, monkeypatch):
    settings.REKINDLE = {"RELEASE": "r7"}
    monkeypatch.setenv("REKINDLE_GRACE", "30")

    source = {one.name: one.source for one in viewer.get("/workers/").context["settings"]}

    assert (source["RELEASE"], source["GRACE"], source["POLL"]) == ("REKINDLE", "environment", "default")


def test_the_doctor_is_heard(viewer):
    assert "No worker is alive, so nothing runs." in text(viewer.get("/workers/"))


def test_hostile_text_is_shown_as_text(viewer):
    alive(host="<script>x</script>", release="<b>")
    DutyFactory(error="<img src=x>")

    page = text(viewer.get("/workers/"))

    assert "<script>x" not in page
    assert "<img" not in page
    assert " style=" not in page


def test_the_page_and_its_polls_ask_little(viewer, django_assert_max_num_queries):
    alive()
    WorkerFactory(dead=True)

    with django_assert_max_num_queries(12):
        viewer.get("/workers/")
    with django_assert_max_num_queries(6):
        poll = viewer.get("/workers/", headers=HTMX)
    again = viewer.get("/workers/", headers=HTMX | {"If-None-Match": poll["ETag"]})

    assert "<html" not in text(poll)
    assert again.status_code == 304


def test_nothing_is_changed_here(viewer):
    assert viewer.post("/workers/").status_code == 405


def test_outside_the_demo_no_worker_can_be_killed_and_there_is_no_such_page(operator):
    worker = alive(host=socket.gethostname(), pid=os.getpid())

    assert "Kill" not in text(operator.get("/workers/"))
    assert operator.get(f"/workers/{worker.pk}/kill").status_code == 404
    assert operator.post(f"/workers/{worker.pk}/kill").status_code == 404


@pytest.fixture
def demo(monkeypatch):
    """Every process of this machine is the demo's."""
    monkeypatch.setattr(killing, "may_kill", [lambda pid: True])


def test_in_the_demo_operators_are_offered_to_kill_what_lives_here(operator, viewer, demo):
    here = alive(host=socket.gethostname(), pid=1)
    alive(host="elsewhere", pid=1)
    WorkerFactory(host=socket.gethostname(), pid=1)  # its lock is free

    page = text(operator.get("/workers/"))

    assert page.count("Kill this worker") == 1
    assert f"/workers/{here.pk}/kill" in page
    assert "Kill this worker" not in text(viewer.get("/workers/"))


def test_before_a_worker_is_killed_the_page_says_what_it_holds_and_what_would_run_again(operator, demo):
    worker = alive(host=socket.gethostname(), pid=1)
    one = WorkflowFactory(running=True, worker=worker, name="order", key="ORD-1")
    StepFactory(workflow=one, position=0, name="load", status="done")
    StepFactory(workflow=one, position=1, name="charge", status="open")

    page = text(operator.get(f"/workers/{worker.pk}/kill"))

    assert "It holds 1 workflow." in page
    assert "resumes at charge (attempt 1 of 3), 1 step kept" in page
    assert operator.get("/workers/0/kill").status_code == 404


def test_a_kill_that_comes_too_late_is_refused_with_the_present_truth(operator, demo):
    worker = WorkerFactory(host=socket.gethostname(), pid=os.getpid())  # its lock is free

    response = operator.post(f"/workers/{worker.pk}/kill")

    assert response.status_code == 409
    assert "is dead already" in text(response)


def test_what_a_worker_left_is_told_one_by_one(viewer):
    dead = WorkerFactory(dead=True, host="host-2", pid=812)
    holder = alive(host="host-4", pid=99)
    one = WorkflowFactory(running=True, worker=holder, name="order", key="ORD-1")
    told = {"step": "charge", "in_step": True, "plan": {"kept": 2, "again": [{"name": "charge"}]}}
    again = {"resumed_at": timezone.now(), "seconds_to_detect": 0.6, "seconds_to_resume": 0.3}
    RecoveryFactory(workflow_id=one.pk, workflow_key="ORD-1", worker=dead.pk, **told, **again)
    for _ in range(7):
        RecoveryFactory(recovered=True, worker=dead.pk)

    page = text(viewer.get("/workers/"))

    assert "Running again" in page
    assert "2 steps kept; charge runs again; again after 0.9 s on <code>host-4:99</code>" in page
    assert "and 2 more" in page

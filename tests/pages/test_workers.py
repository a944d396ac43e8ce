"""The workers page: who lives, what the dead left, what the installation says of itself."""

from datetime import timedelta

from django.utils import timezone

from tests.factories import DutyFactory, RecoveryFactory, WorkerFactory, WorkflowFactory
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

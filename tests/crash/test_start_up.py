"""A new process after a deploy or a crash: it looks for the dead before its first claim."""

import subprocess
import sys

import pytest

from recovery.models import Recovery
from workflows import start, start_many
from workflows.models import Event, Workflow

from . import flows  # noqa: F401
from .conftest import ROOT, until
from .test_killed import CLAIM_AND_DIE, all_ended

pytestmark = pytest.mark.django_db(transaction=True)


def leave_orphans(workers, count):
    """Their worker has died before anything of them ran."""
    start_many("three", [{"tag": f"orphan{n}"} for n in range(count)])
    subprocess.run([sys.executable, "-c", CLAIM_AND_DIE], env=workers.environment, cwd=ROOT, check=True)
    assert Workflow.objects.filter(worker__isnull=False).count() == count


def test_a_starting_worker_finds_the_dead_before_its_first_claim(workers, ledger):
    """S0-003, S0-010, S0-012, S0-027, S0-071, S0-076, S0-105, S1-005, S1-016, S1-047, C3: storage survives, memory does not."""
    # The test's own server may just have started; and it is the lock that shall tell, however slow this machine is.
    workers.environment |= {"REKINDLE_RESTART_GRACE": "0", "REKINDLE_STALE_AFTER": "600"}
    leave_orphans(workers, 3)
    fresh = start("three", {"tag": "fresh"})

    workers.start()

    until(all_ended, "all have ended")
    assert set(Recovery.objects.values_list("detected_by", "reason")) == {("start-up", "infrastructure_restart")}
    found = Event.objects.filter(type="workflow.orphaned").order_by("at").last()
    assert Event.objects.get(workflow=fresh, type="workflow.started").at > found.at
    assert len(ledger()) == len(set(ledger())) == 12


def test_without_the_start_up_look_the_look_out_finds_them(workers, ledger):
    """S0-064, S0-093, S0-094, S0-107, C29: each way of finding can be switched off by itself."""
    leave_orphans(workers, 3)

    workers.start(REKINDLE_STARTUP_SWEEP="0")

    until(all_ended, "all have ended")
    assert set(Recovery.objects.values_list("detected_by", flat=True)) == {"worker"}


def test_running_queued_and_paused_all_come_back_by_the_same_claim(workers, ledger):
    """S0-002, S0-013..S0-015, S0-068, S0-072, S0-106, S2-008, S2-011, S2-013, S2-085: one query, whatever it was before."""
    leave_orphans(workers, 1)
    queued = start("three", {"tag": "queued"})
    paused = start("brief", {"tag": "paused"})

    workers.start()

    until(all_ended, "all have ended")
    orphan = Workflow.objects.exclude(pk__in=[queued.pk, paused.pk]).get()
    claims = ("workflow.started", "workflow.recovered", "workflow.resumed")
    told = {one.pk: [event.type for event in one.events.filter(type__in=claims)] for one in (orphan, queued, paused)}
    assert told == {
        orphan.pk: ["workflow.started", "workflow.recovered"],
        queued.pk: ["workflow.started"],
        paused.pk: ["workflow.started", "workflow.resumed"],
    }

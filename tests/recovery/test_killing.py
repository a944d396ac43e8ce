"""Who may be killed from a page: living workers that this `up` started on this machine, and nobody else."""

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from project import descent
from recovery import killing
from recovery.models import AuditEntry
from tests.recovery.world import take_lock
from workflows.errors import Refused
from workflows.models import Worker

pytestmark = pytest.mark.django_db

SLEEP = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]
GRANDCHILD = [sys.executable, "-c", f"import subprocess; print(subprocess.Popen({SLEEP!r}).pid, flush=True); input()"]


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(SLEEP, text=True) as child:
        yield child
        child.kill()


@pytest.fixture
def offered(monkeypatch):
    monkeypatch.setenv(descent.TOLD, "")
    descent.tell()
    monkeypatch.setattr(killing, "may_kill", [descent.is_of_this_up])


def worker_of(process: subprocess.Popen[str], **fields: object) -> Worker:
    worker = Worker.objects.create(**{"host": socket.gethostname(), "pid": process.pid} | fields)
    take_lock(worker)
    return worker


def refused(worker: Worker) -> str:
    with pytest.raises(Refused) as refusal:
        killing.kill(worker.pk, by="otto")
    return str(refusal.value)


def test_a_worker_that_was_started_here_is_killed_and_that_is_written_down(offered, process):
    worker = worker_of(process)

    assert killing.kill(worker.pk, by="otto") == f"Killed {worker}, which held 0 workflows."

    assert process.wait() == -9
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.subject, entry.subject_id, entry.refused) == ("kill", "worker", str(worker.pk), "")


def test_who_descends_from_somebody_else_lives_on(offered, process, monkeypatch):
    monkeypatch.setenv(descent.TOLD, f"{process.pid}:1")

    assert "was not started by the demo" in refused(worker_of(process))

    assert process.poll() is None
    assert "was not started by the demo" in AuditEntry.objects.get().refused


def test_the_number_of_this_up_used_again_by_another_is_not_this_up(offered, process, monkeypatch):
    up, born = descent.os.environ[descent.TOLD].split(":")
    monkeypatch.setenv(descent.TOLD, f"{up}:{int(born) - 1}")

    assert not descent.is_of_this_up(process.pid)


def test_children_of_children_are_of_this_up_too(offered):
    with subprocess.Popen(GRANDCHILD, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        grandchild = int(child.stdout.readline())

        assert descent.is_of_this_up(grandchild)

        descent.os.kill(grandchild, 9)
        child.kill()


def test_a_worker_on_another_machine_with_the_same_number_is_left_alone(offered, process):
    assert "was not started by the demo" in refused(worker_of(process, host="elsewhere"))
    assert process.poll() is None


def test_a_number_that_somebody_else_has_by_now_is_not_killed(offered, process):
    """The worker is dead: its lock is free. The process that has its number now is a stranger."""
    stranger = Worker.objects.create(host=socket.gethostname(), pid=process.pid)

    assert "is dead already" in refused(stranger)
    assert process.poll() is None


def test_what_is_gone_is_gone(offered, process):
    worker = worker_of(process)
    process.kill()
    process.wait()

    assert "is gone already" in refused(worker)


def test_where_nobody_says_whose_they_are_nobody_is_killed(process):
    assert not killing.is_offered()
    assert "was not started by the demo" in refused(worker_of(process))
    assert process.poll() is None

"""`manage.py chaos`: random blows on real processes, judged from outside."""

import json
import os
import signal
import subprocess
import sys

import pytest

from workflows import start
from workflows.models import Worker

from .conftest import ROOT, until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def chaos(outside):
    """Starts `manage.py chaos`; whatever a failed test leaves ends with its guard."""
    begun = []

    def start_chaos(*words):
        command = [sys.executable, "manage.py", "chaos", "--json", *words]
        pipe = subprocess.PIPE
        begun.append(subprocess.Popen(command, cwd=ROOT, env=outside, stdout=pipe, stderr=pipe, text=True))
        return begun[-1]

    yield start_chaos
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate()


def await_their_end(pids):
    """The killed are gone once init has reaped them, a moment after the one who killed them."""
    until(lambda: not any(lives(pid) for pid in pids), "the workers of chaos are gone")


def lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def judged(process):
    out, err = process.communicate(timeout=1000)
    assert process.returncode == 0, f"{out}\n{err[-3000:]}"
    return json.loads(out)


def test_a_short_storm_breaks_no_promise(chaos):
    """I1, I2, I3, I4, I5, I7, I8; S0-005, S0-103, S1-048, S2-005."""
    verdict = judged(chaos("--seconds", "6", "--workflows", "120"))

    assert verdict["broken"] == []
    assert (verdict["done"], verdict["open"]) == (120, 0)
    assert sum(verdict["blows"].values()) > 0
    await_their_end(Worker.objects.values_list("pid", flat=True))


def test_chaos_keeps_its_hands_off_other_peoples_work(chaos):
    start("three")

    process = chaos("--seconds", "1", "--workflows", "1")
    _, err = process.communicate(timeout=100)

    assert process.returncode == 1
    assert "holds workflows that chaos did not start" in err
    assert not Worker.objects.exists()


def test_the_workers_of_chaos_end_with_it_even_if_it_is_killed(chaos):
    """It ends its own processes, whatever happens."""
    process = chaos("--seconds", "600", "--workflows", "50")
    until(Worker.objects.exists, "its workers are up", seconds=90)

    os.kill(process.pid, signal.SIGKILL)

    await_their_end(Worker.objects.values_list("pid", flat=True))


@pytest.mark.proof
@pytest.mark.parametrize("storm", range(3))
def test_a_long_storm_breaks_no_promise(chaos, storm):
    """I1..I5, I7, I8."""
    verdict = judged(chaos("--seconds", "90", "--workflows", "1500", "--workers", "3", "--settle", "600"))

    assert verdict["broken"] == []

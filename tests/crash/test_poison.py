"""One workflow that kills its process, among many that do nothing wrong."""

from collections import Counter

import pytest

from recovery.models import Recovery
from workflows import start, start_many
from workflows.models import Event, Worker, Workflow

from . import flows  # noqa: F401
from .conftest import until
from .test_killed import all_ended

pytestmark = pytest.mark.django_db(transaction=True)

INNOCENT = 63


def test_one_poison_among_63_with_longer_steps_fails_alone(workers, ledger):
    """I4, I11, S0-102, design 5.5: the others lose time, never their life.

    No step of theirs ends between the crashes, so nothing sets their attempts back: after two in company they have as many
    as the poison. From then on each runs alone, and only the one that kills its process there is given up.
    """
    start("strikes", {"company": INNOCENT})
    start_many("endures", [{"tag": f"w{n}"} for n in range(INNOCENT)])

    workers.start(concurrency=INNOCENT + 1, REKINDLE_RECOVERY_DELAY="0.001")

    until(all_ended, "all have ended", seconds=120)
    assert Workflow.objects.filter(name="endures", status="completed", recoveries=2).count() == INNOCENT
    times = Counter(ledger())
    assert {times[f"w{n}:begun"] for n in range(INNOCENT)} == {3}
    assert {times[f"w{n}:ended"] for n in range(INNOCENT)} == {1}
    alone = set(Worker.objects.filter(alone=True).values_list("pk", flat=True))
    assert set(Event.objects.filter(type="workflow.completed").values_list("worker", flat=True)) <= alone

    poison = Workflow.objects.get(name="strikes")
    assert (poison.status, times["struck"]) == ("failed", 4)
    assert poison.error["message"] == "Workflow recovery failed after 3 attempts"
    assert poison.error["open"] == ["kills"]
    last = Recovery.objects.filter(workflow_id=poison.pk).order_by("id").last()
    assert (last.outcome, last.step) == ("gave_up", "kills")
    assert last.worker in alone

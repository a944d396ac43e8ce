"""One workflow that kills its process, among many that do nothing wrong."""

from collections import Counter

import pytest

from recovery.models import Recovery
from workflows import start, start_many
from workflows.models import Worker, Workflow

from .conftest import until

pytestmark = pytest.mark.django_db(transaction=True)


def test_one_poison_among_63_fails_alone(workers, ledger):
    """I4, I11, S0-102, design 5.5: the others lose time, never their life."""
    start("poison", {"tag": "p"})
    start_many("slow", [{"tag": f"w{n}", "seconds": 0.3, "steps": 2} for n in range(63)])

    workers.start(concurrency=64, REKINDLE_RECOVERY_DELAY="0.002")

    until(lambda: not Workflow.objects.filter(finished_at=None).exists(), "all have ended", seconds=120)
    assert Workflow.objects.filter(name="slow", status="completed").count() == 63
    poison = Workflow.objects.get(name="poison")
    assert poison.status == "failed"
    assert poison.error["message"] == "Workflow recovery failed after 3 attempts"
    assert poison.error["open"] == ["kills"]
    assert Counter(ledger())["p:begun"] == 4
    assert Worker.objects.filter(alone=True).exists()
    last = Recovery.objects.filter(workflow_id=poison.pk).order_by("id").last()
    assert (last.outcome, last.step) == ("gave_up", "kills")
    assert Worker.objects.get(pk=last.worker).alone

"""One that fails among many."""

import pytest

from workflows import start_many
from workflows.models import Workflow

from . import flows  # noqa: F401
from .conftest import until
from .test_killed import all_ended

pytestmark = pytest.mark.django_db(transaction=True)


def test_one_that_fails_stops_neither_its_batch_nor_the_worker(workers, ledger):
    """S2-030, S2-031, S2-034, S2-037, S2-039, S2-042, S2-043, S2-054..S2-057, S3-075, C27; I11: each has its own end."""
    start_many("brief", [{"tag": f"w{n}", "fails": n == 3} for n in range(10)])
    assert set(Workflow.objects.values_list("status", flat=True)) == {"queued"}

    workers.start(concurrency=4)

    until(all_ended, "all have ended")
    failed = Workflow.objects.get(status="failed")
    assert (failed.input["tag"], failed.error["message"]) == ("w3", "as it was told to")
    assert Workflow.objects.filter(status="completed", error__isnull=True, finished_at__isnull=False).count() == 9
    assert len(ledger()) == len(set(ledger())) == 20

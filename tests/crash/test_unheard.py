"""What nobody told a worker, it finds out: an act on what it holds, and a claim of which it never heard."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from workflows import cancel, resume, start
from workflows.models import Step, Worker, Workflow

from . import flows  # noqa: F401
from .conftest import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nobody_is_woken(monkeypatch):
    """As if this process had died between its commit and the NOTIFY, or a pooler stood between."""
    monkeypatch.setattr("workflows.verbs.poke", lambda payload="": None)


def test_a_body_that_looks_whether_it_should_stop_sees_a_cancellation_of_which_nobody_told(workers, ledger):
    """I10, design 4, operators: NOTIFY, tick, RETURNING of every write."""
    workers.start()
    workflow = start("obliging")
    until(lambda: "begun" in ledger(), "it runs")

    cancel(workflow.pk, by="ann")

    until(lambda: Workflow.objects.get().status == "cancelled", "it is cancelled")
    assert ledger() == ["begun", "stopped"]


def test_an_answer_and_its_variables_reach_a_branch_while_another_one_works(workers, ledger):
    """Seed 3: a person resumes it, perhaps with new variables. The holder enters the branch again with those."""
    workers.start()
    workflow = start("one_asks_one_works", variables={"rate": 1})
    waiting = Step.objects.filter(workflow=workflow, basket="desk", status="waiting")
    until(lambda: "begun" in ledger() and waiting.exists(), "one waits, the other works")

    resume(workflow.pk, by="ann", variables={"rate": 2})

    until(lambda: Workflow.objects.get().status == "completed", "both have ended")
    assert ledger() == ["begun", "rate:2"]
    assert Workflow.objects.get().variables == {"rate": 2}


def test_a_claim_of_which_its_worker_never_heard_is_given_back_by_that_worker(workers, ledger):
    """Faults: committed, but nobody heard it. The worker lives, so nobody else would ever wake what it took."""
    workers.start()
    workflow = start("three", {"tag": "w"}, at=timezone.now() + timedelta(days=1))

    claimed = {"status": "running", "worker": Worker.objects.get(), "wake_at": None, "fence": 1, "running_at": Now()}
    Workflow.objects.filter(pk=workflow.pk).update(**claimed)

    until(lambda: Workflow.objects.get().status == "completed", "it was given back and run")
    assert Workflow.objects.get().recoveries == 0
    assert ledger() == ["w:0", "w:1", "w:2"]

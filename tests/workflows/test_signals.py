"""Django signals: after the commit, at most once, and no receiver can do harm."""

import pytest
from django.db import transaction

from workflows import signals, start, verbs
from workflows.testing import rehearse

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def heard():
    """What receivers were told; `heard.hook` is done inside one of them."""

    class Heard(list):
        hook = staticmethod(lambda: None)

        def __call__(self, signal, sender, **told):
            self.append(told)
            self.hook()

    heard = Heard()
    every = (signals.workflow_finished, signals.workflow_recovered)
    for signal in every:
        signal.connect(heard)
    yield heard
    for signal in every:
        signal.disconnect(heard)


@pytest.mark.parametrize(
    ("name", "given", "status"), [("three", {}, "completed"), ("flaky", {"fails": 1, "tries": 1}, "failed")]
)
def test_an_end_is_told_by_who_made_it_durable(heard, name, given, status):
    done = rehearse(name, **given).to_end()

    assert heard == [{"workflow_id": done.pk, "name": name, "key": None, "status": status}]


def test_a_recovery_is_told_when_it_runs_again(heard):
    rehearsal = rehearse("three")
    rehearsal.crash_after(1)

    rehearsal.to_end()

    told = {key: heard[0][key] for key in ("workflow_id", "attempt", "max_attempts")}
    assert told == {"workflow_id": rehearsal.workflow.pk, "attempt": 1, "max_attempts": 3}


def test_an_operators_act_is_told_after_its_commit_and_not_if_it_is_rolled_back(heard):
    workflow = start("three")
    with transaction.atomic():
        verbs.cancel(workflow.pk, by="ada")
        assert heard == []
        transaction.set_rollback(True)
    assert heard == []

    verbs.cancel(workflow.pk, by="ada")

    assert [told["status"] for told in heard] == ["cancelled"]


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_receiver_that_raises_harms_nobody(heard, error):
    def hook():
        raise error

    heard.hook = hook

    assert rehearse("three").to_end().status == "completed"
    assert len(heard) == 1

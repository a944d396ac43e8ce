"""What operators do to workflows that ended, wait, or were asked before."""

import pytest

from workflows import Run, verbs, workflow
from workflows.errors import Refused
from workflows.models import Step, Workflow
from workflows.testing import rehearse

from . import flows

pytestmark = pytest.mark.django_db


def test_revive_lets_a_failure_stand_that_the_body_has_gone_past():
    """I2: only what ended the workflow is tried anew; the way round an older failure stays as recorded."""
    broken = {"first", "second"}

    @workflow("goes_round")
    def goes_round(run: Run) -> list[str]:
        def body(name: str) -> str:
            flows.note(name)
            if name in broken:
                raise ValueError(name)
            return name

        def branch(run: Run) -> str:
            return str(run.step(body, "first", name="first"))

        try:
            (result,) = run.parallel("p", a=branch)
        except Exception:
            result = run.step(body, "instead", name="instead")
        return [result, run.step(body, "second", name="second")]

    flows.calls.clear()
    rehearsal = rehearse("goes_round")
    assert rehearsal.to_end().status == "failed"

    broken.clear()
    verbs.revive(rehearsal.workflow.pk, by="ann", reason="fixed")

    done = rehearsal.to_end()
    assert (done.status, done.output) == ("completed", ["instead", "second"])
    assert flows.calls == ["first", "instead", "second", "second"]
    assert Step.objects.get(name="first").status == "failed"


def test_revive_tries_a_failed_branch_anew_inside_its_block():
    broken = {"b"}

    @workflow("breaks_in_a_branch")
    def breaks_in_a_branch(run: Run) -> object:
        def body(name: str) -> str:
            flows.note(name)
            if name in broken:
                raise ValueError(name)
            return name

        def inner(run: Run) -> object:
            return run.parallel("q", b=lambda run: run.step(body, "b", name="b"))

        return run.parallel("p", a=lambda run: run.step(body, "a", name="a"), i=inner)

    flows.calls.clear()
    rehearsal = rehearse("breaks_in_a_branch")
    assert rehearsal.to_end().status == "failed"

    broken.clear()
    verbs.revive(rehearsal.workflow.pk, by="ann", reason="fixed")

    assert rehearsal.to_end().output == ["a", ["b"]]
    assert flows.calls == ["a", "b", "b"]


def test_a_wait_whose_time_was_over_waits_anew_when_it_is_revived():
    @workflow("nobody_came")
    def nobody_came(run: Run) -> object:
        return run.pend("desk", timeout=60)

    rehearsal = rehearse("nobody_came")
    assert rehearsal.to_end().status == "failed"

    verbs.revive(rehearsal.workflow.pk, by="ann", reason="now I am here")
    rehearsal._let_time_pass()
    rehearsal.turn()
    rehearsal.resume(result="here")

    assert rehearsal.to_end().output == "here"


def test_two_pends_are_answered_one_after_the_other_before_anybody_claims():
    """The second answer finds it queued already, and counts."""

    @workflow("two_desks")
    def two_desks(run: Run) -> object:
        return run.parallel("p", a=lambda run: run.pend("a"), b=lambda run: run.pend("b"))

    rehearsal = rehearse("two_desks")
    rehearsal.to_end()
    rehearsal.resume(basket="a", result=1)
    rehearsal.resume(basket="b", result=2)

    assert rehearsal.to_end().output == [1, 2]


def test_a_cancellation_that_was_asked_for_is_not_replaced_by_a_pause():
    """I10: after "cancelling" was shown it is cancelled; a double click is one act."""

    @workflow("asked_twice")
    def asked_twice(run: Run) -> None:
        def act() -> None:
            verbs.cancel(run.id, by="ann")
            verbs.cancel(run.id, by="ann")
            with pytest.raises(verbs.Refused, match="is being cancelled"):
                verbs.pause(run.id, by="bob")

        run.step(act)
        run.step(flows.note, "after", name="after")

    flows.calls.clear()
    rehearse("asked_twice").turn()

    cancelled = Workflow.objects.get()
    assert cancelled.status == "cancelled"
    assert cancelled.events.filter(type="workflow.cancel_asked").count() == 1
    assert flows.calls == []


def test_a_request_does_not_outlive_the_end_of_its_workflow():
    """I6: the page must not say "pausing" of what has failed."""

    @workflow("asked_and_failed")
    def asked_and_failed(run: Run) -> None:
        def act() -> None:
            verbs.pause(run.id, by="ann")
            verbs.fail(run.id, by="bob", reason="no more")

        run.step(act)

    rehearse("asked_and_failed").turn()

    assert (Workflow.objects.get().status, Workflow.objects.get().asked) == ("failed", None)


def test_an_inbox_that_nobody_reads_is_full_one_day(monkeypatch):
    """I11; faults: whoever claims it reads all of them. Refused is not lost, and the same message still counts once."""
    monkeypatch.setattr("workflows.verbs.UNREAD", 2)
    pk = rehearse("three").workflow.pk
    assert verbs.signal(pk, "letter", uid="1")
    assert verbs.signal(pk, "letter", uid="2")

    with pytest.raises(Refused, match="2 messages lie unread in its inbox"):
        verbs.signal(pk, "letter", uid="3")

    assert verbs.signal(pk, "letter", uid="2") is False
    workflow = Workflow.objects.get(pk=pk)
    assert (workflow.inbox.count(), workflow.nudges) == (2, 2)


def test_whoever_acts_may_have_a_long_name():
    """Any user model: a name is cut where it is stored, and keeps nobody from acting."""
    pk = rehearse("three").workflow.pk

    assert verbs.signal(pk, "letter", by="n" * 254)

"""What is held for longer than its run limit: flagged, extended, given up or failed, as its policy says."""

from contextlib import contextmanager

import pytest

from workflows import start, verbs
from workflows.errors import Fenced
from workflows.held import Recorded
from workflows.models import Event, Policy, Workflow
from workflows.overrun import Overruns

from .hands import done, hands

pytestmark = pytest.mark.django_db(transaction=True)


class Watched:
    """One workflow in the hands of this process, with a step open, and who looks at it."""

    def __init__(self, claimer):
        self.claimer, self.left, self.news = claimer, [], []
        self.hold()

    def hold(self):
        Workflow.objects.filter(wake_at__isnull=False).update(wake_at=Workflow.objects.get().created_at)
        (self.held,) = self.claimer.claim(1)
        self.held.paths["."] = [Recorded(".", 0, "sticks", status="open", attempt=1)]
        self.held.write(step=self.held.paths["."][0], event="step.started")
        return self.held

    def look(self, after):
        """After so many seconds in hand."""
        self.held.claimed_at -= after
        Overruns(self.claimer.worker, {str(self.held.id): self.held}, self.left.append, self.news.append).look()
        self.held.claimed_at += after
        if not self.left and not self.held.leaving:
            self.held.write(event="step.heard")  # whatever was told before is durable now


@contextmanager
def watched(run_limit=None, **policy):
    start("three")
    Workflow.objects.update(run_limit=run_limit)
    if policy:
        Policy.objects.create(name="three", **policy)
    with hands() as claimer:
        yield Watched(claimer)


def told():
    return list(Event.objects.filter(type="workflow.overrunning").order_by("seq").values_list("data", flat=True))


def test_without_a_limit_nothing_overruns():
    """C1, C57, S0-065: off unless the definition or the policy sets it."""
    with watched() as run:
        run.look(after=100_000)

    assert (told(), run.left) == ([], [])


def test_past_its_limit_it_is_flagged_once():
    """C57, S1-043: flag is the default; one event for each hold, and it goes on."""
    with watched(run_limit=5) as run:
        run.look(after=4)
        run.look(after=6)
        run.look(after=60)

    (data,) = told()
    assert (data["run_limit"], data["on_run_limit"], data["open"]) == (5, "flag", ["sticks"])
    assert Workflow.objects.get().status == "running"
    assert run.left == []


def test_the_watch_begins_with_every_claim_and_ends_with_the_hold():
    """S0-061, S0-063, S0-080, S1-042, C1, C4: it has no alarm of its own, so it takes none from whoever sleeps."""
    with watched(run_limit=60) as run:
        run.look(after=59)
        assert told() == []
        run.look(after=60)
        assert len(told()) == 1

        run.held.write(row={"status": "paused", "pause_reason": "sleep", "wake_in": 3600}, event="workflow.paused")
        alarm = Workflow.objects.get().wake_at
        run.look(after=100_000)
        assert (Workflow.objects.get().wake_at, len(told())) == (alarm, 1)

        run.hold()
        run.look(after=59)
        assert len(told()) == 1
        run.look(after=60)
        run.held.write(row={"status": "completed"}, event="workflow.completed")
        run.look(after=100_000)

    assert len(told()) == 2
    assert Workflow.objects.get().status == "completed"


def test_extended_it_is_looked_at_again_after_another_limit():
    """S1-043."""
    with watched(run_limit=5, on_run_limit="extend") as run:
        for age in (6, 7, 11, 12):
            run.look(after=age)

    assert len(told()) == 2
    assert run.left == []


def test_the_policy_wins_over_the_row():
    """C57, S0-065: the row has what held when it was started."""
    with watched(run_limit=5) as run:
        Policy.objects.create(name="three", run_limit=50)
        run.look(after=6)
        assert told() == []

        run.look(after=51)

    assert [data["run_limit"] for data in told()] == [50]


def test_recovered_it_is_given_up_and_its_hung_body_is_fenced_off():
    """C57: another run takes over with a higher fence; it counts as an attempt, for there was no progress."""
    with watched(run_limit=5, on_run_limit="recover") as run:
        hung = run.held
        run.look(after=6)

        orphan = Workflow.objects.get()
        assert (orphan.status, orphan.worker, orphan.fence > hung.fence) == ("running", None, True)
        assert orphan.wake_at is not None
        assert run.left == [hung]
        again = run.hold()
        assert (again.recovery_attempts, again.is_recovery) == (1, True)
        with pytest.raises(Fenced):
            hung.write(step=done(hung, "late"), event="step.completed")

    orphaned = Event.objects.get(type="workflow.orphaned")
    assert (orphaned.data["finding"], orphaned.data["open"]) == ("overrunning", ["sticks"])


def test_recovering_what_always_hangs_is_bounded():
    """I4, S0-046."""
    with watched(run_limit=5, on_run_limit="recover") as run:
        Workflow.objects.update(max_recovery_attempts=2)
        for _ in range(2):
            run.look(after=6)
            run.hold()
        run.look(after=6)

    ended = Workflow.objects.get()
    assert (ended.status, ended.recoveries) == ("failed", 2)
    assert ended.error["message"] == "Workflow recovery failed after 2 attempts"
    assert ended.error["open"] == ["sticks"]


def test_failed_it_names_the_limit_and_the_open_step():
    """S1-043."""
    with watched(run_limit=5, on_run_limit="fail") as run:
        run.look(after=6)

    ended = Workflow.objects.get()
    assert (ended.status, ended.worker, run.left) == ("failed", None, [run.held])
    assert ended.error["message"] == "It was held for longer than its run limit of 5 s in step sticks."


def test_a_cancellation_that_a_hung_body_never_saw_is_carried_out_instead():
    """I10."""
    with watched(run_limit=5, on_run_limit="fail") as run:
        verbs.cancel(run.held.id, by="ada")
        run.look(after=6)

    assert Workflow.objects.get().status == "cancelled"


def test_where_the_mode_only_observes_recover_means_flag():
    with watched(run_limit=5, on_run_limit="recover", mode="observe") as run:
        run.look(after=6)

    assert [data["on_run_limit"] for data in told()] == ["flag"]
    assert Workflow.objects.get().worker_id is not None


def test_quick_runs_and_those_about_to_return_are_not_looked_at():
    """S0-067."""
    with watched(run_limit=0.1, on_run_limit="fail") as run:
        run.look(after=0.5)
        run.held.leaving = True
        run.look(after=60)

    assert told() == []
    assert Workflow.objects.get().status == "running"


def test_what_an_operator_ended_while_its_body_hangs_is_left_behind():
    """I10: it is no zombie, but its slot is lost until the body returns."""
    with watched() as run:
        verbs.fail(run.held.id, by="ada", reason="enough")
        run.look(after=6)

        with pytest.raises(Fenced):
            run.held.write(event="step.completed")

    assert run.left == [run.held]
    assert not Event.objects.filter(type="workflow.zombie_refused").exists()


def test_what_was_taken_over_while_its_body_hangs_is_told_once():
    """I3."""
    with watched() as run:
        Workflow.objects.update(fence=5, worker=None, wake_at=Workflow.objects.get().due_at)
        run.look(after=6)
        run.look(after=60)

    assert Event.objects.filter(type="workflow.zombie_refused").count() == 1

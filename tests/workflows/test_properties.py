"""Random programs, struck at random points: whatever dies, wakes up late or is ordered, the invariants hold.

A point is a durable write or the inside of a body. After each action the workflow is read from outside by SQL; at the
end its output is what the program means, as if nothing had happened. `make proof` tries many more.
"""

from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workflows import verbs
from workflows.errors import Killed, Refused
from workflows.held import Held
from workflows.inline import InlineJournal
from workflows.models import Event, Step, Worker, Workflow
from workflows.run import Run
from workflows.takeover import end_worker, release
from workflows.testing import rehearse

from .invariants import check, ended
from .programs import Program, expected, has_ticket, ledger, programs, variables

pytestmark = pytest.mark.django_db

ENOUGH = 400  # turns within which every program must be over
FAULTS = ["die before", "die after", "hand back", "zombie"]
ACTS = ["pause", "resume", "cancel", "fail", "revive", "signal", "signal twice", "answer", "nothing"]

actions = st.lists(st.tuples(st.sampled_from(FAULTS + ACTS), st.integers(0, 8), st.booleans()), min_size=1, max_size=6)


class Struck(InlineJournal):
    """A worker's journal; at the given point something happens."""

    def __init__(self, worker: int, scene: "Scene", what: str, at: int) -> None:
        super().__init__(worker)
        self.scene, self.what, self.left = scene, what, at
        self.dead = False

    def submit(self, held: Held) -> None:
        if self.dead:
            raise Killed
        struck = self.reached()
        if struck and self.what == "die before":
            self.die(held)
        if struck:
            self.strike(held)
        super().submit(held)
        if struck and self.what == "die after":
            self.die(held)

    def in_body(self, run: Run) -> None:
        if run._held.journal is not self or not self.reached():
            return
        if self.what.startswith("die"):
            self.die(run._held)
        self.strike(run._held)

    def reached(self) -> bool:
        self.left -= 1
        return self.left == 0

    def die(self, held: Held) -> None:
        self.dead = True
        held.refuse(Killed())
        raise Killed

    def strike(self, held: Held) -> None:
        if self.what == "hand back":
            held.stopping = True
        elif self.what == "zombie":
            self.scene.take_over(self.worker)
            self.scene.turn("nothing", 0)
        elif self.what in ACTS:
            self.scene.act(self.what)


class Scene:
    """One workflow and everything that is done to it."""

    def __init__(self, program: Program, lazy: bool) -> None:
        ledger.open()
        self.program, self.lazy = program, lazy
        self.rehearsal = rehearse("program", program=program)
        self.pk = self.rehearsal.workflow.pk
        if lazy:
            Workflow.objects.filter(pk=self.pk).update(persistence="lazy")
        self.letters = 0

    def perform(self, what: str, at: int, time_passes: bool) -> None:
        if at == 0 and what in ACTS:
            self.act(what)
        before, began = ended(self.pk), len(ledger.begun)
        if time_passes:
            self.rehearsal._let_time_pass()
        self.turn(what, at)
        again = before & set(ledger.begun[began:])
        assert not again, f"I2: steps whose end was stored ran again: {again}"
        check(self.pk)

    def turn(self, what: str, at: int) -> None:
        """Claim it, if it is due, and run it until it ends, waits or is struck."""
        worker = Worker.objects.create(host="test", pid=1)
        journal = Struck(worker.pk, self, what, at)
        outer, ledger.on_body = ledger.on_body, journal.in_body
        try:
            self.rehearsal._run(worker, journal)
        except Killed:
            pass
        finally:
            ledger.on_body = outer
        self.take_over(worker.pk)

    def take_over(self, worker: int) -> None:
        end_worker(Worker.objects.get(pk=worker), "died")
        release(self.pk, detected_by="test")

    def act(self, what: str) -> None:
        """What operators and others may do at any time; a refusal is an answer."""
        verb = {"pause": verbs.pause, "cancel": verbs.cancel, "fail": verbs.fail, "revive": verbs.revive}
        try:
            with transaction.atomic():
                if what in verb:
                    verb[what](self.pk, by="ann", reason="a test")
                elif what == "resume":
                    self.resume()
                elif what == "answer":
                    self.answer()
                elif what.startswith("signal"):
                    self.write_letters(twice=what == "signal twice")
        except Refused:
            pass

    def resume(self) -> None:
        """Take back a pause, carried out or not."""
        workflow = Workflow.objects.get(pk=self.pk)
        if workflow.pause_reason == "suspended" or (workflow.asked or {}).get("what") == "pause":
            verbs.resume(self.pk, by="ann")

    def answer(self) -> None:
        """Do what a person would do at the first basket. A pend with a time is left to its time."""
        wait = Step.objects.filter(workflow=self.pk, status="waiting", wake_at=None).exclude(basket="")
        for step in wait.exclude(kind="signal").order_by("pk")[:1]:
            given: dict[str, Any] = {"result": "answered"} if step.kind == "pend" else {}
            verbs.resume(self.pk, by="ann", basket=step.basket, path=step.path, **given)

    def write_letters(self, *, twice: bool = False) -> None:
        names = {node["n"] for node in _receives(self.program)}
        for name in sorted(names):
            self.letters += 1
            for _ in range(1 + twice):
                verbs.signal(self.pk, name, f"letter {name}", uid=f"{name}:{self.letters}", by="ann")

    def finish(self) -> Workflow:
        """The faults are over: everybody does what is expected of them, and it must come to its end."""
        for _ in range(ENOUGH):
            workflow = check(self.pk)
            if workflow.status == "completed":
                return workflow
            if workflow.is_finished:
                self.act("revive")
            elif workflow.pause_reason == "suspended":
                self.act("resume")
            elif workflow.wake_at is None:
                self.act("answer" if not workflow.basket.startswith("signal:") else "signal")
                if check(self.pk).wake_at is None:
                    self.act("answer")
            self.perform("nothing", 0, time_passes=True)
        raise AssertionError(f"I1: it is {workflow.status} ({workflow.pause_reason}) and does not end")


def _receives(program: Program) -> list[dict[str, Any]]:
    from .programs import _walk

    return [node for node in _walk(program["body"] + program["handler"]) if node["do"] == "receive"]


def perform(program: Program, lazy: bool, acts: list[tuple[str, int, bool]]) -> None:
    with transaction.atomic():
        scene = Scene(program, lazy)
        for act in acts:
            scene.perform(*act)
        done = scene.finish()

        assert done.output == expected(program)
        if not has_ticket(program):
            assert done.variables == variables(program)
        if not lazy:
            results: dict[str, Any] = {}
            for key, result in ledger.went:
                assert results.setdefault(key, result) == result, f"I2: {key} went on with another result"
        assert not Event.objects.filter(workflow=done, type="workflow.blocked").exists()
        transaction.set_rollback(True)


QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=150, derandomize=True, deadline=None, database=None, suppress_health_check=QUIET)
@given(programs(), st.booleans(), actions)
def test_whatever_strikes_a_workflow_it_ends_as_if_nothing_had_happened(program, lazy, acts):
    """I1, I2, I3, I5, I6."""
    perform(program, lazy, acts)


@pytest.mark.proof
@settings(max_examples=2000, deadline=None, database=None, suppress_health_check=QUIET, print_blob=True)
@given(programs(most=7), st.booleans(), actions)
def test_whatever_strikes_many_more_workflows_they_end_as_if_nothing_had_happened(program, lazy, acts):
    """I1, I2, I3, I5, I6."""
    perform(program, lazy, acts)

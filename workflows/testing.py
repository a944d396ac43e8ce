"""For authors of workflows: run one to its end inside a plain `db` fixture or `TestCase`, on the test's own connection.

    rehearsal = rehearse("order", order_id="A1")
    assert rehearsal.to_end().output == {...}

    rehearsal = rehearse("order", order_id="A1")
    rehearsal.crash_after(2)                  # a worker dies once two steps are recorded; the work comes back
    assert rehearsal.to_end().status == "completed"

    rehearsal = rehearse("order", order_id="A1")
    rehearsal.crash_in("charge_card")         # a worker dies in this step: its body has run, its end is not recorded
    assert rehearsal.to_end().status == "completed"

Waits do not take time: the row is aged, not the clock. `assert_idempotent(charge_card, "A1")` runs a step twice.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import connections

from . import verbs
from .applying import Applied, Asked
from .claiming import Claimer
from .conf import settings
from .definitions import Definition, find
from .errors import Killed, Refused
from .executing import execute
from .generations import reopen, rerun_from
from .inline import InlineConnection, InlineJournal
from .models import Step, Worker, Workflow
from .paths import Alone
from .starting import start
from .takeover import end_worker, take_over

TURNS = 10_000  # a rehearsal that is not over by then goes in circles


def rehearse(name: str | Definition, /, **input: Any) -> "Rehearsal":
    """Start a workflow for a rehearsal; nothing runs yet."""
    return Rehearsal(start(name, input))


def assert_idempotent(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a step's body twice, as a crash would; both answers must be equal (S3-091)."""
    first, second = function(*args, **kwargs), function(*args, **kwargs)
    assert first == second, f"{function.__name__} is not idempotent: first {first!r}, then {second!r}"
    return first


@dataclass
class Rehearsal:
    """One workflow, run by hand."""

    workflow: Workflow

    def turn(self) -> Workflow:
        """Claim it and run it until it ends or waits."""
        worker = Worker.objects.create(host="rehearsal", pid=os.getpid(), ended_why="")
        self._run(worker, InlineJournal(worker.pk))
        end_worker(worker, "stopped")
        return self._fresh()

    def to_end(self) -> Workflow:
        """Run it to its end, letting time pass where it sleeps. Stops where it waits for a person, a policy or other code."""
        for _ in range(TURNS):
            if self._fresh().is_finished or not self._let_time_pass():
                return self.workflow
            fence = self.workflow.fence
            if self.turn().fence == fence:
                return self.workflow  # nobody may claim it
        raise AssertionError(f"{self.workflow} did not end within {TURNS} turns.")

    def crash_after(self, steps: int) -> Workflow:
        """Run it on a worker that dies as soon as that many further steps are recorded, and take its work over."""
        self._crash(steps, "")
        return self._fresh()

    def crash_in(self, step: str) -> Workflow:
        """Run it on a worker that dies in that step, its body done and its end not recorded, and take its work over."""
        assert self._crash(TURNS, step), f"{self.workflow} did not come to the step {step}."
        return self._fresh()

    def resume(self, **given: Any) -> Workflow:
        """Do what a person would do at a basket."""
        verbs.resume(self.workflow.pk, **given)
        return self._fresh()

    def reopen(self, ticket: str, **given: Any) -> Workflow:
        """Reopen it, and go on with the new generation."""
        self.workflow = reopen(self.workflow.pk, ticket, **{"by": "rehearsal", "reason": ""} | given)
        return self.workflow

    def rerun_from(self, step: str = "", **given: Any) -> Workflow:
        """Run it again from a step, and go on with the new generation."""
        self.workflow = rerun_from(self.workflow.pk, step, **{"by": "rehearsal", "reason": ""} | given)
        return self.workflow

    def signal(self, name: str, data: Any = None, **given: Any) -> bool:
        return verbs.signal(self.workflow.pk, name, data, **given)

    @property
    def steps(self) -> list[str]:
        """The recorded steps, in the order in which they ended."""
        ended = Step.objects.filter(workflow=self.workflow, status__in=["done", "failed"]).order_by("ended_at", "pk")
        return [f"{step.path}{step.name}" for step in ended]

    def _crash(self, steps: int, inside: str) -> bool:
        worker = Worker.objects.create(host="rehearsal", pid=os.getpid(), ended_why="")
        journal = Mortal(worker.pk, steps, inside)
        died = False
        while not died and self._let_time_pass():
            fence = self.workflow.fence
            try:
                self._run(worker, journal)
            except Killed:
                died = True
            if self._fresh().fence == fence:
                break  # nobody may claim it
        end_worker(worker, "died")
        take_over([worker.pk], detected_by="worker")
        return died

    def _run(self, worker: Worker, journal: InlineJournal) -> None:
        definition = find(self.workflow.name)
        claimer = Claimer(InlineConnection(), worker.pk, journal, {definition.name: definition})
        others = Workflow.objects.filter(name=definition.name, wake_at__isnull=False).exclude(pk=self.workflow.pk)
        for held in claimer.claim(1 + others.count()):
            if held.id == self.workflow.pk:
                execute(held, Alone())
            else:
                held.stopping = True  # not this one's turn: hand it back
                execute(held, Alone())

    def _let_time_pass(self) -> bool:
        """Age every wait of this workflow until its earliest is over. False if it waits for someone."""
        if self._fresh().is_finished or self.workflow.wake_at is None:
            return False
        with connections[settings().database].cursor() as cursor:
            cursor.execute(
                """WITH ahead AS (SELECT GREATEST(wake_at - now(), interval '0') AS by FROM rekindle_workflow WHERE id = %(id)s),
                steps AS (UPDATE rekindle_step SET wake_at = wake_at - ahead.by FROM ahead
                    WHERE workflow_id = %(id)s AND status = 'waiting')
                UPDATE rekindle_workflow SET wake_at = wake_at - ahead.by FROM ahead WHERE id = %(id)s""",
                {"id": self.workflow.pk},
            )
        return True

    def _fresh(self) -> Workflow:
        self.workflow.refresh_from_db()
        return self.workflow


class Mortal(InlineJournal):
    """A journal whose process dies after so many recorded steps, or when a certain one should be recorded."""

    def __init__(self, worker: int, steps: int, inside: str) -> None:
        super().__init__(worker)
        self.left, self.inside = steps, inside

    def apply(self, cursor: Any, asked: Asked) -> Applied:
        held, entry = asked[0]
        if self.left <= 0 or any(s["name"] == self.inside and s["status"] != "open" for s in entry.steps.values()):
            held.refuse(Killed())
            raise Killed
        applied = super().apply(cursor, asked)
        self.left -= sum(step["status"] in ("done", "failed") for step in entry.steps.values())
        if self.left <= 0:
            held.refuse(Killed())  # it is recorded, and nothing after it begins
        return applied


__all__ = ["Refused", "Rehearsal", "assert_idempotent", "rehearse"]

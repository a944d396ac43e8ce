"""What recovery would do with a workflow, said before it is done. Page, command line and Recovery row show the same.

`plan_of` decides without the database; `plan` reads what it needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from workflows.baskets import kind_of
from workflows.commands.table import moment
from workflows.conf import settings
from workflows.errors import NotFound
from workflows.integrity import is_read
from workflows.models import Status, Step, Workflow
from workflows.tips import failed_tips

from .case import basket_of
from .checking import RECOVERABLE, Check, Word, check, uncertain

ENDED = (Step.Status.DONE, Step.Status.FAILED)
ON_CRASH = {
    "rerun": "{name} runs again",
    "later": "{name} runs again, in half a minute or later",
    "hold": "{name} is held for review in crash_review",
    "fail": "{name} fails, as its author said",
}


@dataclass(frozen=True, slots=True)
class Again:
    """A step that runs a second time, or would if its author had not said otherwise."""

    path: str
    name: str
    idempotent: bool
    uncertain: bool  # begun, end unknown
    on_crash: str = "rerun"

    @property
    def runs(self) -> bool:
        return not self.uncertain or self.on_crash in ("rerun", "later")

    def __str__(self) -> str:
        what = ON_CRASH[self.on_crash if self.uncertain else "rerun"].format(name=self.name)
        if not self.runs:
            return f"{what} (begun, its end is unknown)"
        return what if self.idempotent else f"{what} (not declared idempotent)"


@dataclass(frozen=True, slots=True)
class Plan:
    """`refusal` says why nothing would be done; the rest then tells what would happen if it could."""

    subject: str
    verb: str  # recover, revive
    refusal: str
    kept: int
    broken: list[Again]
    after: str  # the last step that is kept
    attempt: int
    max_attempts: int
    waiting: list[dict[str, str]]
    ticket: str
    repairs: list[str] = field(default_factory=list)

    @property
    def again(self) -> list[Again]:
        return [step for step in self.broken if step.runs]

    @property
    def summary(self) -> str:
        if self.refusal:
            return f"Will not {self.verb} {self.subject}: {self.refusal}."
        kept = f"{self.kept} step{'' if self.kept == 1 else 's'} kept"
        parts = [f"{self._where()} (attempt {self.attempt} of {self.max_attempts}), {kept}"]
        parts += [str(step) for step in self.broken]
        parts += [f"{wait['name']} keeps waiting in {wait['basket']}" for wait in self.waiting]
        return f"Will {self.verb} {self.subject}: {'; '.join(parts)}."

    @property
    def sentences(self) -> list[str]:
        return [self.summary, *self.repairs]

    def as_json(self) -> dict[str, Any]:
        names = ("path", "name", "idempotent", "uncertain")
        return {
            "kept": self.kept,
            "again": [{name: getattr(step, name) for name in names} for step in self.again],
            "attempt": self.attempt,
            "max_attempts": self.max_attempts,
            "waiting": self.waiting,
            "ticket": self.ticket,
            "sentences": self.sentences,
        }

    def _where(self) -> str:
        if self.broken:
            return f"resumes at {' and '.join(step.name for step in self.broken)}"
        if self.after:
            return f"resumes after {self.after}"
        return f"begins at the handler of ticket {self.ticket}" if self.ticket else "begins at its first step"


def plan(workflow_id: UUID) -> Plan:
    workflow = Workflow.objects.using(settings().database).filter(pk=workflow_id).first()
    if workflow is None:
        raise NotFound(f"There is no workflow {workflow_id}; retention may have removed it.")
    steps = list(Step.objects.using(settings().database).filter(workflow=workflow))
    return plan_of(workflow, steps, check(workflow_id))


def plan_of(workflow: Workflow, steps: Sequence[Step], found: Check | None = None) -> Plan:
    """Without a check: of a workflow that somebody is about to take over."""
    revive = workflow.status in (Status.FAILED, Status.CANCELLED)
    read = [step for step in steps if step.status != Step.Status.DROPPED and is_read(step.path, workflow.ticket)]
    broken = [_again(step) for step in _in_order(uncertain(read))]
    resumed = [step for step in read if step.status == Step.Status.AGAIN and step.kind == Step.Kind.STEP]
    if revive:
        resumed += [step for step in failed_tips(read, workflow.ticket) if step.kind == Step.Kind.STEP]
    broken += [_again(step) for step in _in_order(resumed)]
    names = {(step.path, step.position) for step in resumed}
    kept = [step for step in read if step.status in ENDED and step.kind == Step.Kind.STEP]
    kept = [step for step in kept if (step.path, step.position) not in names]
    last = max(kept, key=lambda step: (step.ended_at is not None, step.ended_at or 0, step.position), default=None)
    return Plan(
        subject=str(workflow),
        verb="revive" if revive else "recover",
        refusal=_refusal(workflow, found),
        kept=len(kept),
        broken=broken,
        after=last.name if last else "",
        attempt=1 if revive else workflow.recovery_attempts + 1,
        max_attempts=workflow.max_recovery_attempts,
        waiting=[_wait(step) for step in _in_order(read) if step.status == Step.Status.WAITING],
        ticket=workflow.ticket.partition("~")[0],
        repairs=[*_given_up(found), *_unsaved(workflow), *_joins(read), *_deadlines(read)],
    )


# -- parts ----------------------------------------------------------------------------------------------------------


def _again(step: Step) -> Again:
    return Again(step.path, step.name, step.idempotent, step.status == Step.Status.OPEN, step.on_crash)


def _in_order(steps: Sequence[Step]) -> list[Step]:
    return sorted(steps, key=lambda step: (step.path, step.position))


def _refusal(workflow: Workflow, found: Check | None) -> str:
    if found is None or found.reason in RECOVERABLE:
        return ""
    if workflow.status in (Status.FAILED, Status.CANCELLED):
        return ""
    return found.why


def _given_up(found: Check | None) -> list[str]:
    spent = found is not None and found.reason == Word.MAX_ATTEMPTS_EXCEEDED
    return [f"By hand only: {found.why}."] if found and spent else []


def _unsaved(workflow: Workflow) -> list[str]:
    """S3-019: what a lazy workflow did since its last save is not recorded."""
    if workflow.persistence != "lazy" or workflow.recovery_attempts or workflow.is_finished:
        return []
    return ["It saves lazily: every step since its last save runs again."]


def _wait(step: Step) -> dict[str, str]:
    basket = basket_of(step)
    return {"path": step.path, "name": step.name, "basket": basket, "kind": kind_of(basket)}


def _joins(steps: Sequence[Step]) -> list[str]:
    """C33: a block whose end is not recorded is entered again, branch by branch."""
    told = []
    for block in steps:
        if block.kind != Step.Kind.PARALLEL or block.status in ENDED:
            continue
        suffix = f"~{block.occurrence}" if block.occurrence > 1 else ""
        branches = (block.result or {}).get("branches", [])
        paths = {branch: f"{block.path}{block.name}{suffix}.{branch}." for branch in branches}
        begun = {step.path for step in steps}
        missing = [branch for branch, path in paths.items() if path not in begun]
        inside = [step for step in steps if step.path in paths.values()]
        if missing:
            told.append(f"{_list(missing)} of {block.name} had not begun and begins, as the stored branches say.")
        elif all(step.status in ENDED for step in inside):
            told.append(f"All branches of {block.name} are recorded: path {block.path} continues after the join.")
    return told


def _deadlines(steps: Sequence[Step]) -> list[str]:
    """C11: a wait's end is stored once and never recomputed."""
    timed = [step for step in _in_order(steps) if step.status == Step.Status.WAITING and step.wake_at]
    return [f"{step.name} on path {step.path} still ends at {moment(step.wake_at)}." for step in timed]


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

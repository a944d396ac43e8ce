"""What a verdict looks at, and what it says."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from workflows.models import Policy, Step, Workflow

from ..models import Recovery
from ..planning import Plan, plan_of
from ..sentences import Part, Sentence


class Severity(StrEnum):
    CALM = "calm"  # as it should be
    WATCH = "watch"  # something is wrong, and is being mended without anybody's help
    ACT = "act"  # it waits for a person who knows better


class Kind(StrEnum):
    """Every situation a workflow, or all of Rekindle, can be in. Attention groups by it."""

    PENDING = "pending"
    QUEUED = "queued"
    NAME_PAUSED = "name paused"
    LIMITED = "limit reached"
    NO_CODE = "no code"
    NO_WORKER = "no worker"
    ALONE = "waits to run alone"
    BUSY = "all workers are busy"
    LATE = "late"
    RUNNING = "running"
    RECOVERING = "running again"
    OVERRUNNING = "overrunning"
    SILENT = "silent"
    CANCELLING = "cancelling"
    PAUSING = "pausing"
    ORPHAN = "orphan"
    LEFT = "left by its mode"
    SLEEPING = "sleeping"
    RETRYING = "retrying"
    BASKET = "in a basket"
    SIGNAL = "waits for a signal"
    UNCERTAIN = "uncertain"
    REVIEW = "held for review"
    SUSPENDED = "suspended"
    CORRUPT = "beyond repair"
    BLOCKED = "blocked"
    LANE = "in a lane"
    COMPLETED = "completed"
    FAILED = "failed"
    FAILED_BY_HAND = "failed by hand"
    GIVEN_UP = "given up"
    DISCARDED = "discarded"
    CANCELLED = "cancelled"
    REOPENED = "reopened"

    NO_SCHEDULER = "no scheduler"  # of Rekindle itself
    NOT_ENFORCED = "not enforced"


@dataclass(frozen=True, slots=True)
class Told:
    """The line of the diary that brought it where it is."""

    type: str
    at: datetime
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Seen:
    """A loaded workflow. Only the row and the time are needed; what else is known makes the sentences richer."""

    workflow: Workflow  # with its worker
    now: datetime
    steps: Sequence[Step] = ()
    locked: bool = True  # whether its worker's lock is held, so far as that says anything
    obstacle: str | None = None  # of workflows.claiming
    live_workers: int = 1
    mode: str = "enforce"
    policy: Policy | None = None
    rescue: Recovery | None = None  # the newest
    told: Told | None = None
    successor: UUID | None = None

    @property
    def plan(self) -> Plan:
        return plan_of(self.workflow, self.steps)

    @property
    def open(self) -> Step | None:
        """The step whose body runs, or ran when its worker died: the one that began first."""
        bodies = [step for step in self.steps if step.status == Step.Status.OPEN and step.kind == Step.Kind.STEP]
        return min(bodies, key=lambda step: (step.began_at or self.now, step.path), default=None)

    @property
    def waits(self) -> list[Step]:
        """What its paths wait for, the deepest first: that is the one a resume answers."""
        found = [step for step in self.steps if step.status == Step.Status.WAITING]
        return sorted(found, key=lambda step: (-step.path.count("."), step.position))

    def say(self, *parts: Part) -> Sentence:
        return Sentence(parts, self.now)


@dataclass(frozen=True, slots=True)
class Verdict:
    kind: Kind
    severity: Severity
    state: str  # names icon and colour
    word: str
    headline: Sentence
    rest: Sentence
    about: str = ""  # step, basket or obstacle: what a group has in common besides kind and name
    at: datetime | None = None  # when something happens next

    def __str__(self) -> str:
        return f"{self.headline} {self.rest}".strip()

    @property
    def why(self) -> Sentence:
        """All of it, for whoever has read the word already."""
        parts = [*self.headline.parts, *([" ", *self.rest.parts] if self.rest else [])]
        if isinstance(parts[0], str) and parts[0].startswith(f"{self.word}: "):
            parts[0] = parts[0].removeprefix(f"{self.word}: ")
            parts = parts if parts[0] else parts[1:]
            if isinstance(parts[0], str):
                parts[0] = parts[0][:1].upper() + parts[0][1:]
        return Sentence(tuple(parts), self.headline.now)

    @property
    def needs_attention(self) -> bool:
        return self.severity != Severity.CALM

"""One step, told in full: its attempts, what it gave or why it failed, and what an author may want to know."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from workflows.models import Step, Workflow

from .redacting import shown
from .sentences import Name, Part, Sentence, lasting, until
from .timeline import Line
from .timeline.drawing import state_of
from .timeline.spans import BODY, Span
from .tracebacks import Frame, own_frames
from .words import duration

ORDINALS = ("First", "Second", "Third", "Fourth", "Fifth")
WORDS = {
    "running": ("running", "Running"),
    "wait": ("paused", "Waiting"),
    "completed": ("completed", "Done"),
    "failed": ("failed", "Failed"),
    "crashed": ("orphan", "Its worker died"),
    "stopped": ("queued", "Stopped"),
    "dropped": ("cancelled", "Dropped"),
    "block": ("running", "Branches"),
    "none": ("completed", "Kept"),
}
AS_STORED = {
    Step.Status.DONE: "completed",
    Step.Status.FAILED: "failed",
    Step.Status.DROPPED: "dropped",
    Step.Status.WAITING: "wait",
}


@dataclass(frozen=True, slots=True)
class Panel:
    line: Line
    state: str
    word: str
    aside: Sentence
    attempts: list[tuple[str, Sentence, str]]  # which run, what became of it, its error
    idempotency_key: str
    result: str
    error: dict[str, Any]
    frames: list[Frame]
    next_try: datetime | None

    @property
    def step(self) -> Step:
        return self.line.step


def panel(workflow: Workflow, line: Line, chosen: dict[str, Any], now: datetime, *, whole: bool) -> Panel:
    step = line.step
    last = line.open or (line.spans[-1] if line.spans else None)
    known = AS_STORED.get(Step.Status(step.status)) or (state_of(last) if last else "none")
    state, word = WORDS[known]
    error = chosen.get("error") or {}
    has_result = step.status == Step.Status.DONE and step.kind != Step.Kind.SLEEP
    return Panel(
        line=line,
        state=state,
        word=word,
        aside=_aside(line, now),
        attempts=[_attempt(i, span, now) for i, span in enumerate(line.bodies)],
        idempotency_key=f"{workflow.pk}{step.path}{step.position}" if step.kind == Step.Kind.STEP else "",
        result=shown(chosen.get("result"), whole=whole) if has_result else "",
        error=error,
        frames=own_frames(str(error.get("traceback") or "")),
        next_try=step.wake_at if step.status == Step.Status.WAITING else None,
    )


def _aside(line: Line, now: datetime) -> Sentence:
    parts: list[Part] = []
    if len(line.bodies) > 1:
        parts.append(f" · {_nth(len(line.bodies) - 1).lower()} run")
    if line.open:
        parts += [" · ", lasting(line.open.start)]
    elif line.spans and line.spans[-1].end:
        parts.append(f" · {duration((line.spans[-1].end - line.spans[-1].start).total_seconds())}")
    elif line.is_copied:
        parts.append(" · from the generation before")
    return Sentence(tuple(parts), now)


def _attempt(i: int, span: Span, now: datetime) -> tuple[str, Sentence, str]:
    assert span.sort == BODY
    parts: list[Part] = ["Started ", until(span.start)]
    if span.worker:
        parts += [" on ", Name(span.worker)]
    took = duration((span.end - span.start).total_seconds()) if span.end else ""
    ends: dict[str, list[Part]] = {
        "completed": [f", done after {took}."],
        "failed": [f", failed after {took}."],
        "crashed": [f", its worker died after {took}."],
        "stopped": [f", stopped after {took}."],
        "dropped": [f", dropped after {took}."],
    }
    parts += ends.get(span.outcome) or [", running for ", lasting(span.start), "."]
    return f"{_nth(i)} run", Sentence(tuple(parts), now), span.note if span.outcome == "failed" else ""


def _nth(i: int) -> str:
    return ORDINALS[i] if i < len(ORDINALS) else f"{i + 1}th"

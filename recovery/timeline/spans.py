"""The diary read as attempts and waits. Steps say what there is; events say when, under whom and how it ended."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from workflows.models import Event, Step

from ..models import Recovery

BODY = "body"
WAIT = "wait"
BLOCK = "block"

ENDS = {
    "step.completed": "completed",
    "step.failed": "failed",
    "step.pended": "completed",
    "step.interrupted": "stopped",
    "parallel.joined": "completed",
    "parallel.failed": "failed",
}
WAITS = {"sleep.started", "pend.started", "signal.started", "step.held", "step.postponed"}
WAITED = {
    "sleep.completed": "completed",
    "signal.received": "completed",
    "pend.timed_out": "failed",
    "signal.timed_out": "failed",
}
STOPS = {"workflow.handed_back", "workflow.suspended", "workflow.cancelled", "workflow.failed", "workflow.released"}


@dataclass(slots=True)
class Span:
    """One attempt, or one wait. Without an end it goes on."""

    sort: str  # body, wait, block
    start: datetime
    end: datetime | None = None
    outcome: str = ""  # completed, failed, crashed, stopped
    attempt: int = 0
    worker: str = ""
    note: str = ""


@dataclass(slots=True)
class Line:
    """One step on one path."""

    step: Step
    spans: list[Span] = field(default_factory=list)
    closed: bool = False

    @property
    def key(self) -> str:
        return f"{self.step.path}:{self.step.position}"

    @property
    def open(self) -> Span | None:
        return self.spans[-1] if self.spans and self.spans[-1].end is None else None

    @property
    def bodies(self) -> list[Span]:
        return [span for span in self.spans if span.sort == BODY]

    @property
    def is_copied(self) -> bool:
        """Kept from the generation before: its own diary knows nothing of it."""
        return not self.spans and self.step.fence == 0 and self.step.ended_at is not None


@dataclass(slots=True)
class Moment:
    """A death, a recovery, an operator's act."""

    at: datetime
    kind: str  # death, recovery, act
    text: str
    kept: list[str] = field(default_factory=list)  # keys of the lines that were finished by then


@dataclass(slots=True)
class History:
    lines: list[Line]
    moments: list[Moment]
    began: datetime
    ended: datetime


def read(
    steps: Sequence[Step],
    events: Iterable[Event],
    workers: Mapping[int, str],
    rescues: Sequence[Recovery],
    *,
    began: datetime,
    ended: datetime,
) -> History:
    """`ended` is now, as long as the workflow has not ended."""
    reader = _Reader(steps, workers, {rescue.seq: rescue for rescue in rescues if rescue.seq is not None})
    for event in events:
        reader.take(event)
    for line in reader.lines:
        if not line.spans and line.step.began_at and not line.is_copied:
            outcome = {"done": "completed", "failed": "failed"}.get(line.step.status, "")
            sort = BODY if line.step.kind == Step.Kind.STEP else WAIT
            line.spans.append(Span(sort, line.step.began_at, line.step.ended_at, outcome, line.step.attempt))
    starts = [span.start for line in reader.lines for span in line.spans]
    first = reader.first or min(starts, default=began)
    return History(reader.lines, reader.moments, min([first, *starts]), max(ended, first))


class _Reader:
    def __init__(self, steps: Sequence[Step], workers: Mapping[int, str], rescues: Mapping[int, Recovery]) -> None:
        shown = sorted((step for step in steps if step.kind != Step.Kind.VALUE), key=_place(steps))
        self.lines = [Line(step) for step in shown]
        self.moments: list[Moment] = []
        self.first: datetime | None = None
        self._by_name: dict[tuple[str, str], list[Line]] = {}
        for line in sorted(self.lines, key=lambda line: line.step.position):
            self._by_name.setdefault((line.step.path, line.step.name), []).append(line)
        self._round: dict[tuple[str, str], int] = {}
        self._workers, self._rescues = workers, rescues
        self._last_sign: datetime | None = None  # the last thing its present holder wrote
        self._died: datetime | None = None

    def take(self, event: Event) -> None:
        data: dict[str, Any] = event.data or {}
        if event.path and event.step:
            self._take_step(event, data)
        elif event.type == "pend.resumed":
            self._resume(event.at, str(data.get("path", "")))
        elif event.type == "workflow.orphaned" or (event.type in STOPS and data.get("finding")):
            self._crash(event, data)
        elif event.type in ("workflow.recovered", "workflow.resumed", "workflow.started"):
            self._claim(event)
        elif event.type in STOPS:
            self._stop(event.at, "stopped")
        elif event.type == "ticket.raised":
            self._stop(event.at, "dropped", everything=True)
        elif event.type == "workflow.revived":
            self.moments.append(Moment(event.at, "act", f"revived by {data.get('by') or 'an operator'}"))
        if event.type not in ("workflow.orphaned", "workflow.zombie_refused"):
            self._last_sign = event.at

    # -- steps --------------------------------------------------------------------------------------------------------

    def _take_step(self, event: Event, data: dict[str, Any]) -> None:
        line = self._line(event)
        if line is None:
            return
        worker = self._workers.get(event.worker, "") if event.worker else ""
        if event.type in ("step.started", "parallel.started"):
            self._close_wait(line, event.at)
            sort = BODY if event.type == "step.started" else BLOCK
            line.spans.append(Span(sort, event.at, attempt=event.attempt or 0, worker=worker))
        elif event.type in ENDS:
            self._end(line, event, data, worker)
        elif event.type in WAITS:
            self._close_wait(line, event.at)
            line.spans.append(Span(WAIT, event.at, worker=worker, note=event.type))
        elif event.type in WAITED:
            span = line.open or Span(WAIT, event.at)
            if span not in line.spans:
                line.spans.append(span)
            span.end, span.outcome = event.at, WAITED[event.type]
            line.closed = True

    def _end(self, line: Line, event: Event, data: dict[str, Any], worker: str) -> None:
        began = event.at - timedelta(seconds=event.seconds or 0)
        span = line.open
        if span is None or span.sort == WAIT:
            self._close_wait(line, began)
            span = Span(BLOCK if event.type.startswith("parallel") else BODY, began, worker=worker)
            line.spans.append(span)
        elif event.seconds:
            span.start = min(span.start, began)  # its start was told a moment after it began
        span.end, span.outcome, span.attempt = event.at, ENDS[event.type], event.attempt or span.attempt
        if event.type == "step.failed":
            span.note = ": ".join(str(data[name]) for name in ("type", "message") if data.get(name))
        waits = event.type in ("step.pended", "step.interrupted") or bool(data.get("will_retry"))
        if waits:
            line.spans.append(Span(WAIT, event.at, worker=worker, note=event.type))
        line.closed = not waits

    def _line(self, event: Event) -> Line | None:
        """Which of the steps of that name: a new first attempt after an end is the next occurrence."""
        place = (event.path, event.step)
        lines = self._by_name.get(place)
        if not lines:
            return None
        at = self._round.get(place, 0)
        while at < len(lines) - 1 and (lines[at].is_copied or (lines[at].closed and (event.attempt or 0) <= 1)):
            at += 1
        self._round[place] = at
        return lines[at]

    def _close_wait(self, line: Line, at: datetime) -> None:
        if line.open and line.open.sort == WAIT:
            line.open.end, line.spans[-1].outcome = at, "completed"

    def _resume(self, at: datetime, path: str) -> None:
        for line in self.lines:
            if line.step.path == path and line.open and line.open.sort == WAIT:
                self._close_wait(line, at)
                line.closed = line.step.kind != Step.Kind.STEP or line.step.response == Step.Response.OK_PEND

    # -- the workflow -------------------------------------------------------------------------------------------------

    def _claim(self, event: Event) -> None:
        self.first = self.first or event.at
        if self._died is None:
            return
        worker = self._workers.get(event.worker, "a worker") if event.worker else "a worker"
        later = (event.at - self._died).total_seconds()
        kept = [line.key for line in self.lines if line.bodies and line.closed]
        text = f"recovered by {worker}, {_seconds(later)} later, {len(kept)} step{'' if len(kept) == 1 else 's'} kept"
        self.moments.append(Moment(event.at, "recovery", text, kept))
        self._died = None

    def _crash(self, event: Event, data: dict[str, Any]) -> None:
        """It died after its last sign of life, and before it was found."""
        rescue = self._rescues.get(event.seq)
        known = [at for at in (rescue and rescue.last_seen_at, self._last_sign) if at]
        self._died = min(event.at, max(known, default=event.at))
        name = str(data.get("worker") or "its worker")
        lost = {"silent_worker": "fell silent", "overrunning": "gave it up"}.get(str(data.get("finding")), "died")
        text = f"{name} {lost}"
        if event.type == "workflow.failed":
            text += ", and it was given up"
        self.moments.append(Moment(self._died, "death", text))
        self._stop(self._died, "crashed", name)

    def _stop(self, at: datetime, outcome: str, worker: str = "", *, everything: bool = False) -> None:
        for line in self.lines:
            span = line.open
            if span and (span.sort == BODY or everything):
                span.end, span.outcome = max(at, span.start), outcome
                span.worker = span.worker or worker


def _place(steps: Sequence[Step]) -> Any:
    """Blocks before their branches, branches where their block stands."""
    begun: dict[str, datetime] = {}
    for step in steps:
        if step.began_at and (step.path not in begun or step.began_at < begun[step.path]):
            begun[step.path] = step.began_at
    blocks = {
        f"{step.path}{step.name}" + (f"~{step.occurrence}" if step.occurrence > 1 else ""): step
        for step in steps
        if step.kind == Step.Kind.PARALLEL
    }

    def place(step: Step) -> tuple[Any, ...]:
        outer = blocks.get(step.path.rstrip(".").rpartition(".")[0])
        return (*place(outer), step.path, step.position) if outer else (step.path, step.position)

    return place


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.0f} min"

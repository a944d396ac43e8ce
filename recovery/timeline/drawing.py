"""Rows, bars, marks and ticks with their places. Across in percent, down in pixels: it fits every width."""

from dataclasses import dataclass, field
from datetime import datetime

from workflows.models import Step

from ..words import duration
from .scale import Scale, scale
from .spans import BLOCK, BODY, WAIT, History, Line, Moment, Span

MOST = 120  # rows drawn, unless somebody asks for all
ROW, DENSE = 27, 19
ROOMY = 30  # up to so many rows there is room for wide ones
TOP = 34  # the axis
BAR = 11
WAITING = 7
LINE = 17  # of the words under the drawing
WIDTH_OF_WORDS = 0.78  # percent that a letter takes, roughly
URGENT = {Step.Status.FAILED: 0, Step.Status.OPEN: 1, Step.Status.AGAIN: 1, Step.Status.WAITING: 2}


@dataclass(frozen=True, slots=True)
class Bar:
    x: str
    width: str
    y: float
    height: float
    state: str
    title: str
    crashed: bool = False
    end: str = ""  # where it broke


@dataclass(frozen=True, slots=True)
class Row:
    key: str
    label: str
    path: str
    y: int
    bars: list[Bar]
    chosen: bool
    state: str
    line: Line


@dataclass(frozen=True, slots=True)
class Mark:
    x: str
    y: float
    kind: str
    text: str
    ends: bool  # the words stand left of the line


@dataclass(frozen=True, slots=True)
class Tick:
    x: str
    text: str
    ends: bool


@dataclass(frozen=True, slots=True)
class Fold:
    x: str
    width: str
    middle: str
    text: str


@dataclass(frozen=True, slots=True)
class Drawing:
    height: int
    bottom: int  # where the rows end
    row: int = ROW
    rows: list[Row] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    ticks: list[Tick] = field(default_factory=list)
    folds: list[Fold] = field(default_factory=list)
    left_out: int = 0
    total: int = 0

    @property
    def is_dense(self) -> bool:
        return self.row == DENSE


def draw(history: History, *, chosen: str = "", fold: bool = True, most: int | None = MOST) -> Drawing:
    lines = _shown(history.lines, most)
    height = ROW if len(lines) <= ROOMY else DENSE
    across = scale(_busy(history), history.began, history.ended, fold=fold)
    rows = [_row(line, TOP + i * height, height, across, history, line.key == chosen) for i, line in enumerate(lines)]
    bottom = TOP + height * max(1, len(rows))
    marks, depth = _marks(history.moments, across, bottom)
    return Drawing(
        height=bottom + 8 + depth * LINE,
        bottom=bottom,
        row=height,
        rows=rows,
        marks=marks,
        ticks=[Tick(_percent(x), _elapsed(second), x > 97) for x, second in across.ticks()],
        folds=[
            Fold(
                _percent(piece.left),
                _percent(piece.right - piece.left),
                _percent((piece.left + piece.right) / 2),
                duration(piece.end - piece.start),
            )
            for piece in across.folds
        ],
        left_out=len(history.lines) - len(lines),
        total=len(history.lines),
    )


# -- rows -------------------------------------------------------------------------------------------------------------


def _shown(lines: list[Line], most: int | None) -> list[Line]:
    """All of them; if there are too many, what failed, runs or waits, and then the newest."""
    if most is None or len(lines) <= most:
        return lines
    ranked = sorted(range(len(lines)), key=lambda i: (URGENT.get(Step.Status(lines[i].step.status), 3), -i))
    return [lines[i] for i in sorted(ranked[:most])]


def _row(line: Line, y: int, height: int, across: Scale, history: History, chosen: bool) -> Row:
    step, middle = line.step, y + height / 2
    bars = [_bar(line, span, middle, across, history.ended) for span in line.spans]
    bars += [_kept(moment, middle, across) for moment in history.moments if line.key in moment.kept]
    if line.is_copied:
        bars.append(_stub(0.0, middle, "Kept from the generation before; it did not run again"))
    prefix = step.path.strip(".")
    return Row(
        key=line.key,
        label=f"{step.name} ~{step.occurrence}" if step.occurrence > 1 else step.name,
        path=f"ticket {prefix[1:]}" if step.path.startswith(".!") else prefix,
        y=y,
        bars=bars,
        chosen=chosen,
        state=state_of(line.open or (line.spans[-1] if line.spans else None)),
        line=line,
    )


def _bar(line: Line, span: Span, middle: float, across: Scale, ended: datetime) -> Bar:
    left, right = across.at(span.start), across.at(span.end or ended)
    height = {BODY: BAR, WAIT: WAITING, BLOCK: 3}[span.sort]
    return Bar(
        x=_percent(left),
        width=_percent(right - left),
        y=middle - height / 2,
        height=height,
        state=state_of(span),
        title=_title(line, span, ended),
        crashed=span.outcome == "crashed",
        end=_percent(right),
    )


def _kept(moment: Moment, middle: float, across: Scale) -> Bar:
    return _stub(across.at(moment.at), middle, "Kept: read from the record, it did not run again")


def _stub(left: float, middle: float, title: str) -> Bar:
    return Bar(_percent(left), "1.4%", middle - BAR / 2, BAR, "kept", title)


def state_of(span: Span | None) -> str:
    if span is None:
        return "none"
    if span.sort == BLOCK:
        return "block"
    if span.sort == WAIT:
        return "wait"
    return span.outcome or "running"


def _title(line: Line, span: Span, ended: datetime) -> str:
    took = duration(((span.end or ended) - span.start).total_seconds())
    if span.sort == WAIT:
        return f"{line.step.name}: {'waited' if span.end else 'has been waiting for'} {took}"
    if span.sort == BLOCK:
        return f"{line.step.name}: all branches, {took}"
    nth = f", attempt {span.attempt}" if span.attempt > 1 else ""
    on = f" on {span.worker}" if span.worker else ""
    ends = {
        "completed": "done after",
        "failed": "failed after",
        "crashed": "its worker died after",
        "stopped": "stopped after",
        "dropped": "dropped after",
    }
    return f"{line.step.name}{nth}{on}: {ends.get(span.outcome, 'has been running for')} {took}"


# -- marks and ticks --------------------------------------------------------------------------------------------------


def _marks(moments: list[Moment], across: Scale, bottom: int) -> tuple[list[Mark], int]:
    """Words that would run into one another stand on lines of their own."""
    lanes: list[list[tuple[float, float]]] = []
    marks = []
    for moment in moments:
        x, length = across.at(moment.at), len(moment.text) * WIDTH_OF_WORDS
        ends = x + length > 99 or (moment.kind == "death" and x - length > 1)
        reach = (x - length - 1, x) if ends else (x, x + length + 1)
        lane = next((i for i, taken in enumerate(lanes) if all(reach[1] <= a or reach[0] >= b for a, b in taken)), None)
        if lane is None:
            lanes.append([])
            lane = len(lanes) - 1
        lanes[lane].append(reach)
        marks.append(Mark(_percent(x), bottom + 14 + lane * LINE, moment.kind, moment.text, ends))
    return marks, len(lanes)


def _busy(history: History) -> list[tuple[datetime, datetime]]:
    """Whatever ran, and the time between a death and its recovery, which is worth seeing."""
    spans = [span for line in history.lines for span in line.spans if span.sort == BODY]
    found = [(span.start, span.end or history.ended) for span in spans]
    died: datetime | None = None
    for moment in history.moments:
        if moment.kind == "death":
            died = moment.at
        elif moment.kind == "recovery" and died:
            if (moment.at - died).total_seconds() < 60:
                found.append((died, moment.at))
            else:
                found.append((moment.at, moment.at))
    return found


def _percent(value: float) -> str:
    return f"{max(0.0, value):.3f}%"


def _elapsed(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:g} s" if seconds == int(seconds) else f"{seconds:.1f} s"
    return duration(seconds)

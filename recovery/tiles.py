"""The tiles of the overview: a number, what to make of it, how it went. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from .counting import MOST
from .counts import Counts, summed
from .ranges import RANGES, Range
from .words import duration, percent

BACKLOG = 50  # due at once: from here on it is a backlog worth a forecast


@dataclass(frozen=True, slots=True)
class Now:
    """What is true at this moment."""

    running: int
    waiting: int
    due: int
    oldest: float  # seconds
    workers: int
    slots: int
    heard: datetime | None
    swept: datetime | None
    pace: float | None  # how many ended a minute, lately
    used: bool  # whether there ever was a workflow


@dataclass(frozen=True, slots=True)
class Rule:
    id: int
    metric: str
    threshold: float
    window: float
    value: float | None

    @property
    def words(self) -> str:
        """7 of 10 per hour."""
        per = {60.0: "minute", 300: "5 min", 3600: "hour", 86400: "day"}.get(self.window, duration(self.window))
        return f"{self.value or 0:g} of {self.threshold:g} per {per}"

    @property
    def is_passed(self) -> bool:
        return (self.value or 0) > self.threshold


@dataclass(frozen=True, slots=True)
class Tile:
    state: str
    word: str
    number: str
    sub: str
    view: str  # of the list behind it
    change: str = ""
    mood: str = ""  # up: the change is good; down: it is not
    rule: Rule | None = None
    line: list[float] = field(default_factory=list)


def tiles(now: Now, buckets: Sequence[Counts], over: Range, rules: dict[str, Rule]) -> list[Tile]:
    """Of buckets that begin as long before the range as it is long."""
    half = len(buckets) // 2
    before, within = summed(buckets[:half]), summed(buckets[half:])
    shown = buckets[half:]
    free = max(now.slots - now.running, 0)
    workers = f"on {now.workers} worker{'' if now.workers == 1 else 's'}, {free:,} free slots"
    median = within.pth("resume", 0.5)
    well = [percent(within.recovery_success), f"median {duration(median)}" if median is not None else ""]
    return [
        Tile("running", "Running", f"{now.running:,}", workers, "running", line=_line(shown, lambda one: one.running)),
        Tile(
            "paused",
            "Waiting",
            _capped(now.waiting),
            _queue(now),
            "waiting",
            line=_line(shown, lambda one: one.waiting),
        ),
        Tile(
            "completed",
            "Completed",
            f"{within.completed:,}",
            percent(within.success) or "none yet",
            "completed",
            *_more(within.completed, before.completed, good=True),
            line=_line(shown, lambda one: one.completed),
        ),
        Tile(
            "failed",
            "Failed",
            f"{within.failed:,}",
            _since(within.failed, before.failed, over),
            "failed",
            *_difference(within.failed, before.failed),
            line=_line(shown, lambda one: one.failed),
        ),
        Tile(
            "orphan",
            "Recovered",
            f"{within.recovered:,}",
            " · ".join(filter(None, well)) or "no worker died",
            "all",
            rule=rules.get("recovery.triggered"),
            line=_line(shown, lambda one: one.recovered),
        ),
        Tile(
            "queued",
            "Late",
            f"{within.late:,}",
            f"oldest due {duration(now.oldest)}" if now.due else "all on time",
            "waiting",
            rule=rules.get("late"),
            line=_line(shown, lambda one: one.late),
        ),
    ]


def _queue(now: Now) -> str:
    pace = now.pace or 0
    if now.due >= BACKLOG:
        rest = f", {pace:,.0f} a minute, about {duration(now.due / pace * 60)}" if pace >= 1 else ""
        return f"{now.due:,} due{rest}"
    return f"oldest due {duration(now.oldest)} ago" if now.due else "none is due"


def _line(shown: Sequence[Counts], pick: Callable[[Counts], float | None]) -> list[float]:
    values = [pick(one) for one in shown]
    return [float(value) for value in values if value is not None]


def _more(now: int, before: int, *, good: bool) -> tuple[str, str]:
    """+4 %, against the time before."""
    share = (now - before) / before * 100 if before else 0
    if abs(share) < 0.5:
        return "", ""
    return f"{share:+,.0f} %", "up" if (share > 0) == good else "down"


def _difference(now: int, before: int) -> tuple[str, str]:
    return (f"{now - before:+,}", "down" if now > before else "up") if now != before else ("", "")


def _since(now: int, before: int, over: Range) -> str:
    if now == before:
        return "as before" if now else "none"
    return f"to the {RANGES[over.key][0]} before" if over.key in RANGES else "to the time before"


def _capped(number: int) -> str:
    return f"{MOST:,}+" if number >= MOST else f"{number:,}"

"""What was counted in one span, and what it says. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce

from .counting import COUNTS, HISTOGRAMS
from .histogram import percentile


@dataclass(slots=True)
class Counts:
    """What was counted in one span."""

    started: int = 0
    completed: int = 0
    rescued: int = 0
    failed: int = 0
    cancelled: int = 0
    late: int = 0
    recovered: int = 0
    unrecovered: int = 0
    given_up: int = 0
    infrastructure_restart: int = 0
    stale_detection: int = 0
    manual: int = 0
    took: list[int] | None = None
    detect: list[int] | None = None
    resume: list[int] | None = None
    running: int | None = None
    waiting: int | None = None
    due: int | None = None
    oldest: float | None = None
    at: datetime | None = None
    name: str = ""

    def pth(self, histogram: str, share: float) -> float | None:
        return percentile(getattr(self, histogram), share, HISTOGRAMS[histogram])

    @property
    def success(self) -> float | None:
        ended = self.completed + self.failed
        return self.completed / ended if ended else None

    @property
    def recovery_success(self) -> float | None:
        settled = self.recovered + self.unrecovered
        return self.recovered / settled if settled else None


def summed(all: Iterable[Counts]) -> Counts:
    """All of them as one. Samples are not summed: they are of their moment."""
    total = Counts()
    parts = list(all)
    for one in COUNTS:
        setattr(total, one, sum(getattr(part, one) for part in parts))
    for one in HISTOGRAMS:
        setattr(total, one, reduce(_both, (getattr(part, one) for part in parts), None))
    return total


def _both(one: Sequence[int] | None, other: Sequence[int] | None) -> list[int] | None:
    if one is None or other is None:
        return list(one or other or []) or None
    return [a + b for a, b in zip(one, other, strict=True)]

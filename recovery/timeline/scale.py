"""Time along the page, in percent. Long stretches in which nothing ran are folded, so that the rest can be seen."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

FOLD = 0.25  # a quiet stretch longer than this share of all work is folded
SHORTEST = 3.0  # seconds; shorter ones never are
FOLDED = 7.0  # percent of the width that a fold takes
FOLDS = 42.0  # and all of them together at most
NICE = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 6 * 3600, 12 * 3600, 86400, 7 * 86400)
TICKS = 6
APART = 8.0  # percent between two ticks, at least


@dataclass(frozen=True, slots=True)
class Piece:
    """From one second to another, drawn from one percent to another."""

    start: float
    end: float
    left: float
    right: float
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    origin: datetime
    pieces: list[Piece]

    @property
    def folds(self) -> list[Piece]:
        return [piece for piece in self.pieces if piece.folded]

    def at(self, moment: datetime) -> float:
        second = (moment - self.origin).total_seconds()
        for piece in self.pieces:
            if second <= piece.end:
                share = (second - piece.start) / (piece.end - piece.start)
                return piece.left + min(1.0, max(0.0, share)) * (piece.right - piece.left)
        return 100.0

    def ticks(self) -> list[tuple[float, float]]:
        """Percent and seconds."""
        straight = [piece for piece in self.pieces if not piece.folded]
        length = sum(piece.end - piece.start for piece in straight)
        step = next((nice for nice in NICE if length / nice <= TICKS), length / TICKS)
        found: list[tuple[float, float]] = []
        for piece in straight:
            n = -(-piece.start // step)
            while n * step <= piece.end + step * 1e-6:
                place = piece.left + (n * step - piece.start) / (piece.end - piece.start) * (piece.right - piece.left)
                if not found or place - found[-1][0] >= APART:
                    found.append((place, n * step))
                n += 1
        return found


def scale(busy: Iterable[tuple[datetime, datetime]], start: datetime, end: datetime, *, fold: bool = True) -> Scale:
    total = max((end - start).total_seconds(), 0.05)
    work = _union((max(0.0, (a - start).total_seconds()), min(total, (b - start).total_seconds())) for a, b in busy)
    quiet = _quiet(work, total) if fold else []
    length = total - sum(b - a for a, b in quiet)
    width = min(FOLDED, FOLDS / len(quiet)) if quiet else 0
    per_second = (100 - width * len(quiet)) / length if length else 0
    pieces, second, left = [], 0.0, 0.0
    for a, b in [*quiet, (total, total)]:
        if a > second:
            pieces.append(Piece(second, a, left, left + (a - second) * per_second))
            left += (a - second) * per_second
        if b > a:
            pieces.append(Piece(a, b, left, left + width, True))
            left += width
        second = b
    return Scale(start, pieces)


def _quiet(work: list[tuple[float, float]], total: float) -> list[tuple[float, float]]:
    """Long stretches between works. A little is left on either side, so that one sees where it begins."""
    worked = sum(b - a for a, b in work)
    longest = max(SHORTEST, FOLD * worked)
    edges = [(0.0, 0.0), *work, (total, total)]
    gaps = [(a[1], b[0]) for a, b in pairwise(edges)]
    margin = min(longest, worked) * 0.04
    return [(a + margin, b if b == total else b - margin) for a, b in gaps if b - a > longest] if work else []


def _union(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for a, b in sorted(span for span in spans if span[1] >= span[0]):
        if found and a <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], b))
        else:
            found.append((a, b))
    return found

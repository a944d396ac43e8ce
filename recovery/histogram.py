"""Durations as counts between fixed bounds: those of any two spans can be added, and a percentile read off the sum."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

# Seconds. A value belongs between the last bound that is not greater and the next.
# fmt: off
TOOK = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 86400, 7 * 86400)
RESCUE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.35, 1.5, 1.75, 2, 2.5, 3, 4, 5, 7.5, 10, 15, 20, 30, 45, 60, 120, 300, 3600)
# fmt: on


def percentile(counts: Sequence[int] | None, share: float, bounds: Sequence[float]) -> float | None:
    """Between two bounds the values are taken as evenly spread; beyond the last one nothing is known but that."""
    total = sum(counts or ())
    if not counts or not total:
        return None
    up_to = list(accumulate(counts))
    place = bisect_left(up_to, share * total)
    if place >= len(bounds):
        return bounds[-1]
    low = bounds[place - 1] if place else 0.0
    before = up_to[place - 1] if place else 0
    return low + (bounds[place] - low) * (share * total - before) / counts[place]

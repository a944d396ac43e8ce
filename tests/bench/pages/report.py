"""The table, what is missed, the exit status.

p95        the time below which 95 of 100 answers came; at most 100 ms, at both sizes
ratio      of the medians, large to small; at most 2. It counts where the large one takes more than 5 ms longer:
           below that it compares the scheduling of two processes, not the work
queries    at most 12 a page, 6 a poll or chart
commands   and duties are nobody's page; they must stay bounded, which is said as a second
"""

from math import ceil
from statistics import median

from .measure import Found

LONGEST = {"commands": 1000.0, "duties": 1000.0}
PAGE = 100.0
TIMES = 2.0
NOISE = 5.0  # ms
QUERIES = {"page": 12, "csv": 12, "poll": 6, "known": 6}


def show(found: list[Found]) -> int:
    """Print what was found; 1 if a bar was missed."""
    head = ["", "", "p50 1k", "p95 1k", "p50 1M", "p95 1M", "ratio", "queries", ""]
    lines = [head, *(_line(one) for one in found)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    lines.insert(1, ["─" * width for width in widths])
    for line in lines:
        cells = (
            cell.ljust(width) if i in (0, 1, 8) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join(cells).rstrip())
    missed = [one for one in found if misses(one)]
    print(f"\nMilliseconds. {len(found) - len(missed)} of {len(found)} reach every bar.")
    return 1 if missed else 0


def misses(one: Found) -> list[str]:
    """Each bar that is missed, in words."""
    most = LONGEST.get(one.kind, PAGE)
    said = [f"p95 > {most:g} ms ({size})" for size, times in one.times.items() if pth(times, 0.95) > most]
    if ratio(one) > TIMES and one.kind in QUERIES:
        said.append(f"> {TIMES:g} ×")
    if one.kind in QUERIES and max(one.queries.values()) > QUERIES[one.kind]:
        said.append(f"> {QUERIES[one.kind]} queries")
    wanted = 304 if one.kind == "known" else 200
    said += [f"answered {status} ({size})" for size, status in one.status.items() if status != wanted]
    return said


def ratio(one: Found) -> float:
    """Of the medians; 1 where the difference is noise."""
    small, large = median(one.times["small"]), median(one.times["large"])
    return large / small if large - small > NOISE else 1.0


def pth(times: list[float], share: float) -> float:
    return sorted(times)[ceil(len(times) * share) - 1]


def _line(one: Found) -> list[str]:
    small, large = one.times["small"], one.times["large"]
    counts = sorted(set(one.queries.values()))
    figures = (f"{value:.1f}" for times in (small, large) for value in (median(times), pth(times, 0.95)))
    missed = misses(one)
    verdict = "MISSED: " + ", ".join(missed) if missed else ""
    real = median(large) / median(small)
    return [one.kind, one.title, *figures, f"{real:.1f}", "–".join(map(str, counts)), verdict]

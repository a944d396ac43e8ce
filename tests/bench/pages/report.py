"""The table, what is missed, the exit status. What is compared follows from these rules, not from what was measured:

p95        the time below which 95 of 100 answers came; at most 100 ms, at both sizes
ratio      of the medians, large to small; at most 2, and every page has one. What is asked is what the size of the tables
           costs, so both answers must be as long: the small world has every state and name, a page full of each. Where it still
           shows fewer rows, the page is compared with the plain page of its kind there, which is full (`≈`).
           A difference of up to 3 ms is no miss. A page that asks ten questions pays for trees one or two levels deeper
           and for rows that are in no processor's cache, some tenths of a millisecond each, once and for all; and
           the medians of one and the same page differ by a millisecond or two between two halves of the rounds, which each run says
queries    at most 12 a page, 6 a poll or chart
status     200; where nothing is new, 304 in most rounds: only then is it what the median tells of
commands   and duties are nobody's page; they must stay bounded, which is said as a second
"""

from math import ceil
from statistics import median

from .measure import Found

LONGEST = {"commands": 1000.0, "duties": 1000.0}
PAGE = 100.0
TIMES = 2.0
NOISE = 3.0  # ms
QUERIES = {"page": 12, "csv": 12, "poll": 6, "known": 6}
SIZES = ("small", "large")


def show(found: list[Found], loud: int) -> int:
    """Print what was found; 1 if a bar was missed."""
    head = ["", "", "p50 1k", "p95 1k", "p50 1M", "p95 1M", "ratio", "rows", "queries", ""]
    lines = [head, *(_line(one) for one in found)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    lines.insert(1, ["─" * width for width in widths])
    for line in lines:
        cells = (
            cell.ljust(width) if i in (0, 1, 9) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join(cells).rstrip())
    missed = [one for one in found if misses(one)]
    print(f"\nMilliseconds. {len(found) - len(missed)} of {len(found)} reach every bar.")
    print(
        f"Two halves of the rounds of one page in the small one differ by up to {noise(found):.1f} ms (95 of 100 pages)."
    )
    if loud:
        print(f"Before {loud} groups the machine was busy with something else: times may be high.")
    return 1 if missed else 0


def misses(one: Found) -> list[str]:
    """Each bar that is missed, in words."""
    most = LONGEST.get(one.kind, PAGE)
    said = [f"p95 > {most:g} ms ({size})" for size in SIZES if pth(one.times[size], 0.95) > most]
    if one.kind in QUERIES:
        basis, large = median(one.basis), median(one.times["large"])
        if large > TIMES * basis and large - basis > NOISE:
            said.append(f"> {TIMES:g} ×")
        if max(one.queries.values()) > QUERIES[one.kind]:
            said.append(f"> {QUERIES[one.kind]} queries")
    return said + [f"answered {other} ({size})" for size in one.statuses if (other := _unwanted(one, size))]


def _unwanted(one: Found, size: str) -> int | None:
    """Any status that is not 200; if nothing is new, the one that most rounds had instead of 304."""
    statuses = one.statuses[size]
    if one.kind == "known":
        return None if statuses.count(304) > len(statuses) / 2 else max(set(statuses) - {304}, key=statuses.count)
    return next((status for status in statuses if status != 200), None)


def noise(found: list[Found]) -> float:
    """What is measured between two halves of the same: no difference that is smaller says anything."""
    gaps = [
        abs(median(one.times["small"][::2]) - median(one.times["small"][1::2])) for one in found if one.kind in QUERIES
    ]
    return pth(gaps, 0.95) if gaps else 0.0


def pth(times: list[float], share: float) -> float:
    return sorted(times)[ceil(len(times) * share) - 1]


def _line(one: Found) -> list[str]:
    small, large = one.times["small"], one.times["large"]
    figures = (f"{value:.1f}" for times in (small, large) for value in (median(times), pth(times, 0.95)))
    missed = misses(one)
    verdict = "MISSED: " + ", ".join(missed) if missed else ""
    ratio = f"{'' if one.alike else '≈ '}{median(large) / median(one.basis):.1f}"
    return [one.kind, one.title, *figures, ratio, _both(one.rows), _both(one.queries), verdict]


def _both(counts: dict[str, int]) -> str:
    return "–".join(map(str, dict.fromkeys(counts[size] for size in SIZES if size in counts)))

"""Counts over a span, from the kept minutes and hours; what is not kept yet is counted now."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ..counting import COUNTS, HISTOGRAMS, SAMPLED, added, counted
from ..counts import Counts
from ..models.metric import HOUR, MINUTE
from ..ranges import Range
from .together import Rows, together

_LAST = "SELECT minute FROM rekindle_recovery_metricminute WHERE grain = {} AND name = '' ORDER BY minute DESC LIMIT 1"
_EDGES = f"""edges AS MATERIALIZED (SELECT
    CASE WHEN %(grain)s = 60 THEN %(start)s::timestamptz
        ELSE GREATEST(%(start)s::timestamptz, ({_LAST.format(HOUR)}) + interval '1 hour') END AS hours,
    GREATEST(%(start)s::timestamptz, ({_LAST.format(MINUTE)}) + interval '1 minute') AS minutes)"""
_COUNTED = counted("(SELECT minutes FROM edges)", "%(end)s::timestamptz")
_COLUMNS = ", ".join((*COUNTS, *HISTOGRAMS, *SAMPLED))
_KEPT = f"SELECT minute, name, {_COLUMNS} FROM rekindle_recovery_metricminute"  # noqa: S608  (constants)
_ROWS = f"""WITH RECURSIVE {_EDGES}, {_COUNTED}, rows AS (
    {_KEPT} WHERE grain = 3600 AND minute >= %(start)s::timestamptz AND minute < LEAST((SELECT hours FROM edges), %(end)s::timestamptz) AND {{which}}
    UNION ALL
    {_KEPT} WHERE grain = 60 AND minute >= (SELECT hours FROM edges) AND minute < LEAST((SELECT minutes FROM edges), %(end)s::timestamptz) AND {{which}}
    UNION ALL
    SELECT minute, name, {", ".join((*COUNTS, *HISTOGRAMS))}, {", ".join(["NULL"] * len(SAMPLED))} FROM counted WHERE {{which}}
)"""  # noqa: S608  (constants)
_COUNTS = ", ".join(f"COALESCE(sum({one}), 0)::int AS {one}" for one in COUNTS)


def series_of(histograms: Iterable[str]) -> str:
    """SQL: counts by bucket, with these histograms. Adding one up costs more than all the counts together."""
    sums = ", ".join((_COUNTS, *map(added, histograms), *SAMPLED.values()))
    return f"""{_ROWS.format(which="name = %(scope)s")}
SELECT date_bin(%(step)s * interval '1 second', minute, %(start)s::timestamptz) AS at, {sums} FROM rows GROUP BY 1"""  # noqa: S608


SERIES = series_of(HISTOGRAMS)
_NAMED = f"""{_ROWS.format(which="name <> ''")}
SELECT name, {_COUNTS}, {added("took")} FROM rows GROUP BY 1 ORDER BY sum(completed + failed) DESC, name LIMIT 200"""  # noqa: S608
# Asked together with a series, whose span and grain are others.
BY_NAME = _NAMED.replace("%(start)s", "%(since)s").replace("%(grain)s", "%(names_grain)s")


@dataclass(frozen=True, slots=True)
class Span:
    """A range cut into buckets that begin at whole steps; none is shorter than the minutes that are kept."""

    start: datetime
    end: datetime
    step: timedelta

    @property
    def moments(self) -> list[datetime]:
        return [self.start + self.step * i for i in range(-((self.start - self.end) // self.step))]

    def given(self, scope: str = "") -> dict[str, Any]:
        seconds = self.step.total_seconds()
        grain = HOUR if seconds % HOUR == 0 and self.start.minute == 0 else MINUTE
        return {"start": self.start, "end": self.end, "step": seconds, "grain": grain, "scope": scope}


def span(over: Range, *, twice: bool = False) -> Span:
    """Twice: with as many buckets before it, to compare with."""
    step = max(over.step, timedelta(seconds=MINUTE))
    start = _floor(over.start, step)
    if twice:
        start -= step * len(Span(start, over.end, step).moments)
    return Span(start, over.end, step)


def whole(over: Range) -> Span:
    """One bucket, for whoever only adds up. From a day on of whole hours: of a busy name that spares a thousand rows."""
    start = _floor(over.start, timedelta(seconds=MINUTE))
    if over.end - start < timedelta(days=1):
        return Span(start, over.end, timedelta(days=1))
    start = _floor(start, timedelta(seconds=HOUR))
    return Span(start, over.end, timedelta(days=(over.end - start).days + 1))


def series(over: Range, scope: str = "", histograms: Iterable[str] = HISTOGRAMS) -> list[Counts]:
    """One for each bucket, the quiet ones too."""
    asked = span(over)
    return filled(asked, together(asked.given(scope), series=series_of(histograms))["series"])


def filled(asked: Span, rows: Rows) -> list[Counts]:
    found = {at: row | {"at": at} for row in rows if (at := datetime.fromisoformat(row["at"]))}
    return [Counts(**found.get(moment, {"at": moment})) for moment in asked.moments]


def _floor(moment: datetime, step: timedelta) -> datetime:
    seconds = int(step.total_seconds())
    return datetime.fromtimestamp(int(moment.timestamp()) // seconds * seconds, moment.tzinfo)

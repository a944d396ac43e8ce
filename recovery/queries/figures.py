"""Counts over a span, from the kept minutes, hours and days; what is not kept yet is counted now."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ..counting import COUNTS, HISTOGRAMS, SAMPLED, added, counted
from ..counts import Counts
from ..models.metric import DAY, HOUR, MINUTE
from ..ranges import Range
from .together import Rows, together

# Where each grain begins and ends: hours up to the first midnight, whole days, hours again, then minutes as far as they are
# kept. A grain that is coarser than the buckets, or than the span, is left out: it ends where it begins.
_LAST = "SELECT minute FROM rekindle_recovery_metricminute WHERE grain = {} AND name = '' ORDER BY minute DESC LIMIT 1"
_MIDNIGHT = "date_bin('1 day', {}, '2000-01-01Z')"
_EDGES = f"""edges AS MATERIALIZED (SELECT days.*, GREATEST(%(start)s::timestamptz, ({_LAST.format(MINUTE)}) + interval '1 minute') AS minutes,
    CASE WHEN %(grain)s = {MINUTE} THEN %(start)s::timestamptz ELSE GREATEST(days.till, ({_LAST.format(HOUR)}) + interval '1 hour') END AS hours
FROM (SELECT CASE WHEN first < last THEN first ELSE %(start)s::timestamptz END AS since,
    CASE WHEN first < last THEN last ELSE %(start)s::timestamptz END AS till
    FROM (SELECT {_MIDNIGHT.format("%(start)s::timestamptz - interval '1 microsecond'")} + interval '1 day' AS first,
        {_MIDNIGHT.format(f"(SELECT LEAST(%(end)s, minute + interval '1 day') FROM ({_LAST.format(DAY)}) AS d WHERE %(grain)s = {DAY})")} AS last
    ) AS midnights) AS days)"""  # noqa: S608  (constants)


def _kept(columns: str, which: str, grain: int, since: str, till: str) -> str:
    return f"""SELECT minute, name, {columns} FROM rekindle_recovery_metricminute
    WHERE grain = {grain} AND minute >= {since} AND minute < LEAST({till}, %(end)s::timestamptz) AND {which}"""  # noqa: S608


def _edge(name: str) -> str:
    return f"(SELECT {name} FROM edges)"  # noqa: S608  (constants)


def _rows(which: str, histograms: Collection[str]) -> str:
    """CTEs that end in `rows`: all that was counted in the span, of one name or of each."""
    columns = ", ".join((*COUNTS, *histograms, *SAMPLED))
    return f"""WITH RECURSIVE {_EDGES}, {counted(_edge("minutes"), "%(end)s::timestamptz", histograms=histograms)}, rows AS (
    {_kept(columns, which, HOUR, "%(start)s::timestamptz", _edge("since"))}
    UNION ALL
    {_kept(columns, which, DAY, _edge("since"), _edge("till"))}
    UNION ALL
    {_kept(columns, which, HOUR, _edge("till"), _edge("hours"))}
    UNION ALL
    {_kept(columns, which, MINUTE, _edge("hours"), _edge("minutes"))}
    UNION ALL
    SELECT minute, name, {", ".join((*COUNTS, *histograms))}, {", ".join(["NULL"] * len(SAMPLED))} FROM counted WHERE {which}
)"""  # noqa: S608  (constants)


_COUNTS = ", ".join(f"COALESCE(sum({one}), 0)::int AS {one}" for one in COUNTS)


def series_of(histograms: Collection[str]) -> str:
    """SQL: counts by bucket, with these histograms. Adding one up costs more than all the counts together."""
    sums = ", ".join((_COUNTS, *map(added, histograms), *SAMPLED.values()))
    return f"""{_rows("name = %(scope)s", histograms)}
SELECT date_bin(%(step)s * interval '1 second', minute, %(start)s::timestamptz) AS at, {sums} FROM rows GROUP BY 1"""  # noqa: S608


SERIES = series_of(HISTOGRAMS)
_NAMED = f"""{_rows("name <> ''", ["took"])}
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
        grain = next((grain for grain in (DAY, HOUR) if self._is_made_of(grain)), MINUTE)
        return {"start": self.start, "end": self.end, "step": seconds, "grain": grain, "scope": scope}

    def _is_made_of(self, grain: int) -> bool:
        """Whether no row of this grain lies in two buckets. One bucket takes days whatever the hour at which it begins."""
        if grain == DAY and len(self.moments) == 1:
            grain = HOUR
        return self.step.total_seconds() % grain == 0 and self.start.timestamp() % grain == 0


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


def series(over: Range, scope: str = "", histograms: Collection[str] = HISTOGRAMS) -> list[Counts]:
    """One for each bucket, the quiet ones too."""
    asked = span(over)
    return filled(asked, together(asked.given(scope), series=series_of(histograms))["series"])


def filled(asked: Span, rows: Rows) -> list[Counts]:
    found = {at: row | {"at": at} for row in rows if (at := datetime.fromisoformat(row["at"]))}
    return [Counts(**found.get(moment, {"at": moment})) for moment in asked.moments]


def _floor(moment: datetime, step: timedelta) -> datetime:
    seconds = int(step.total_seconds())
    return datetime.fromtimestamp(int(moment.timestamp()) // seconds * seconds, moment.tzinfo)

"""The duty that counts: each minute that has ended becomes rows of MetricMinute, each hour and each day of them one more.

The last minutes are counted again each time, because what commits late is stamped with when it began. Whoever counts
writes the same numbers, so two at once do no harm; after a downtime it goes on where it stopped, some hours at a time.
"""

import time
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import connections, transaction

from workflows.conf import settings

from .counting import COUNTS, HISTOGRAMS, MOST, NAMES, RUNNING, SAMPLED, added, counted, waiting
from .late import DUE_SINCE
from .models.metric import DAY, HOUR, MINUTE
from .tally import Tally

AGAIN = timedelta(minutes=5)
AT_ONCE = timedelta(hours=6)


def _put(columns: Iterable[str], rows: str) -> str:
    changes = ", ".join(f"{one} = EXCLUDED.{one}" for one in columns)
    return f"""INSERT INTO rekindle_recovery_metricminute (grain, minute, name, {", ".join(columns)})
{rows} ORDER BY minute, name ON CONFLICT (grain, minute, name) DO UPDATE SET {changes}"""


_WRITTEN = (*COUNTS, *HISTOGRAMS)
# What was counted before and is no longer there, because it was revived, becomes a zero.
_START, _END = "%(start)s::timestamptz", "%(end)s::timestamptz"
_ALSO = f"""UNION ALL SELECT m, NULL, 'none', NULL, 0 FROM generate_series({_START}, {_END} - interval '1 minute', interval '1 minute') AS m
    UNION ALL SELECT minute, name, 'none', NULL, 0 FROM rekindle_recovery_metricminute
        WHERE grain = 60 AND minute >= {_START} AND minute < {_END} AND name <> ''"""  # noqa: S608  (constants)
_ROWS = f"WITH RECURSIVE {counted(_START, _END, _ALSO)} SELECT 60, minute, name, {', '.join(_WRITTEN)} FROM counted"  # noqa: S608
MINUTES = _put(_WRITTEN, _ROWS)


def _add_up(grain: int, of: int) -> str:
    """SQL: whole spans, each the sum of finer ones. Days are those of UTC, like every bar of a chart."""
    start, end, row = (f"date_bin('{grain} seconds', {moment}, '2000-01-01Z')" for moment in (_START, _END, "minute"))
    return _put(
        (*_WRITTEN, *SAMPLED),
        f"""SELECT * FROM (SELECT {grain}, {row} AS minute, name, {", ".join(f"sum({one})::int" for one in COUNTS)},
        {", ".join(map(added, HISTOGRAMS))}, {", ".join(SAMPLED.values())}
    FROM rekindle_recovery_metricminute
    WHERE grain = {of} AND minute >= {start} AND minute < {end} GROUP BY 2, 3) AS spans""",  # noqa: S608  (constants)
    )


HOURS = _add_up(HOUR, MINUTE)
DAYS = _add_up(DAY, HOUR)

EDGES = f"""WITH RECURSIVE {NAMES} SELECT date_bin('1 minute', now(), '2000-01-01Z'),
    (SELECT minute FROM rekindle_recovery_metricminute WHERE grain = 60 AND name = '' ORDER BY minute DESC LIMIT 1),
    LEAST((SELECT created_at FROM rekindle_workflow ORDER BY id LIMIT 1), (SELECT min(settled_at) FROM rekindle_recovery_recovery),
        (SELECT min(w.finished_at) FROM finished_names n CROSS JOIN LATERAL (SELECT finished_at FROM rekindle_workflow
            WHERE name = n.name AND finished_at IS NOT NULL ORDER BY finished_at LIMIT 1) w))"""  # noqa: S608  (constants)

SAMPLE = f"""UPDATE rekindle_recovery_metricminute SET running = ({RUNNING}), waiting = ({waiting(MOST)}), due = d.due, oldest = d.oldest
    FROM ({DUE_SINCE}) AS d(due, oldest) WHERE grain = 60 AND name = '' AND minute = %(minute)s"""  # noqa: S608  (constants)


def roll_up(ran_by: str, deadline: float) -> Tally:
    """The note says how many minutes were counted for the first time, and whether more are left for the next run."""
    now, last, oldest = _edges()
    kept = timedelta(seconds=settings().keep_history)
    begin = last + timedelta(minutes=1) if last else max(oldest or now, now - kept)
    tally = Tally()
    start = _minute(min(begin, now) - AGAIN)
    while start < now and time.monotonic() < deadline:
        end = min(start + AT_ONCE, now)
        _count(start, end)
        start = end
    if start >= now:
        _sample(now - timedelta(minutes=1))
    else:
        tally.note["left"] = f"{(now - start).total_seconds() / 60:.0f} min"
    return tally


def _edges() -> tuple[datetime, datetime | None, datetime | None]:
    with connections[settings().database].cursor() as cursor:
        cursor.execute(EDGES)
        now, last, oldest = cursor.fetchone()
        return now, last, oldest


def _count(start: datetime, end: datetime) -> None:
    """Minutes, their hours and their days in one transaction: whoever reads sees all or none."""
    with transaction.atomic(using=settings().database), connections[settings().database].cursor() as cursor:
        for counted in (MINUTES, HOURS, DAYS):
            cursor.execute(counted, {"start": start, "end": end})


def _sample(minute: datetime) -> None:
    with connections[settings().database].cursor() as cursor:
        cursor.execute(SAMPLE, {"minute": minute, "seconds": 0, "scope": "", "most": 10_000})


def _minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)

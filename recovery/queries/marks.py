"""What every chart of a range is marked with: releases, workers that started or died, and the rules' thresholds."""

from dataclasses import dataclass
from datetime import datetime

from ..charts import Mark
from ..ranges import Range
from .together import Rows, together

MOST = 8  # more cannot be read

WORKERS = """SELECT host, release, started_at, CASE WHEN ended_why IN ('died', 'silent') THEN COALESCE(last_seen_at, ended_at) END AS died_at,
    lag(release) OVER (ORDER BY id) AS before
FROM rekindle_worker WHERE NOT alone AND (ended_at IS NULL OR ended_at >= %(start)s) AND started_at < %(end)s ORDER BY id DESC LIMIT 400"""
RULES = "SELECT metric, comparison, threshold FROM rekindle_recovery_alertrule WHERE enabled AND scope = '' ORDER BY id"


@dataclass(frozen=True, slots=True)
class Marks:
    moments: list[Mark]
    thresholds: dict[str, float]  # by metric


def marks(over: Range) -> Marks:
    found = together({"start": over.start, "end": over.end}, workers=WORKERS, rules=RULES)
    return Marks(_moments(over, found["workers"]), {rule["metric"]: rule["threshold"] for rule in found["rules"]})


def _moments(over: Range, workers: Rows) -> list[Mark]:
    """Deaths matter most, then releases, then starts; what fell into one bucket is one mark."""
    died: dict[int, Rows] = {}
    released: dict[int, Rows] = {}
    started: dict[int, Rows] = {}
    for worker in workers:
        if at := _within(over, worker["died_at"]):
            died.setdefault(_bucket(over, at), []).append(worker | {"at": at})
        if at := _within(over, worker["started_at"]):
            new = worker["release"] and worker["release"] != worker["before"]
            (released if new else started).setdefault(_bucket(over, at), []).append(worker | {"at": at})
    found = [
        *(Mark(rows[-1]["at"], _said(rows, "died"), "--failed") for rows in died.values()),
        *(Mark(rows[-1]["at"], f"release {rows[-1]['release']}") for rows in released.values()),
        *(Mark(rows[-1]["at"], _said(rows, "started")) for rows in started.values()),
    ]
    return found[:MOST]


def _said(rows: Rows, verb: str) -> str:
    hosts = {row["host"] for row in rows}
    return f"{hosts.pop()} {verb}" if len(hosts) == 1 and len(rows) == 1 else f"{len(rows)} workers {verb}"


def _bucket(over: Range, at: datetime) -> int:
    """Words need more room than bars."""
    return int((at - over.start) / (over.step * 6))


def _within(over: Range, moment: str | None) -> datetime | None:
    at = datetime.fromisoformat(moment) if moment else None
    return at if at and over.start <= at < over.end else None

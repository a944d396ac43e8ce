"""What happened lately, in sentences, the newest first. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .words import duration

SHOWN = 8
PAST = {"recover": "recovered", "fail": "failed", "cancel": "cancelled", "pause": "paused", "resume": "resumed"}


@dataclass(frozen=True, slots=True)
class Activity:
    icon: str
    at: datetime
    before: str  # the sentence: before, what is in bold, and after
    strong: str
    after: str
    small: str = ""


def told(found: Mapping[str, list[dict[str, Any]]]) -> list[Activity]:
    people = [*_audit(found["audit"]), *_batches(found["batches"])]
    every = [*_rescues(found["rescues"]), *_alerts(found["alerts"]), *people, *_joined(found["joined"])]
    return sorted(every, key=lambda one: one.at, reverse=True)[:SHOWN]


def _rescues(rows: list[dict[str, Any]]) -> Iterator[Activity]:
    for row in rows:
        held, running = row["held"], row["running"]
        many = f"{held} workflow{'' if held == 1 else 's'}"
        before = f"{many} running again after " if running == held else f"{running} of {many} running again after "
        small = [f"{duration(row['seconds'])} to recover"] if row["seconds"] is not None else []
        small += [f"{row['given_up']} given up"] if row["given_up"] else []
        small += [f"{row['observed']} only observed"] if row["observed"] else []
        yield Activity("recovery", _at(row["at"]), before, row["worker"] or "a worker", " died", ", ".join(small))


def _alerts(rows: list[dict[str, Any]]) -> Iterator[Activity]:
    for row in rows:
        at = _at(row["opened_at"])
        yield Activity("alerts", at, "", row["name"], " opened", f"threshold {row['threshold']:g}")
        if row["resolved_at"]:
            ended = _at(row["resolved_at"])
            lasted = f"after {duration((ended - at).total_seconds())}"
            yield Activity("alerts", ended, "", row["name"], " resolved", lasted)


def _audit(rows: list[dict[str, Any]]) -> Iterator[Activity]:
    for row in rows:
        verb = f"was refused: {row['act']}" if row["refused"] else PAST.get(row["act"], f"{row['act'].rstrip('e')}ed")
        what = row["name"] or f"{row['subject']} {row['id'][:8]}"
        small = row["refused"] or (f"“{row['reason']}”" if row["reason"] else "")
        yield Activity("audit", _at(row["at"]), "", row["actor"], f" {verb} {what}", small)


def _batches(rows: list[dict[str, Any]]) -> Iterator[Activity]:
    """One line for an act on many, however many: what it did to each is in the audit."""
    for row in rows:
        what = f"{row['act']} {row['total']:,} workflow{'' if row['total'] == 1 else 's'}"
        counts = [f"{row[result]:,} {result}" for result in ("done", "skipped", "failed") if row[result]]
        small = ", ".join([*counts, f"“{row['reason']}”"])
        yield Activity("workflows", _at(row["begun_at"]), "", row["by"], f" began to {what}", small)
        if row["stopped_by"]:
            left = row["total"] - row["done"] - row["skipped"] - row["failed"]
            reached = f"{left:,} not reached"
            yield Activity(
                "workflows", _at(row["ended_at"]), "", row["stopped_by"], f" stopped the batch to {what}", reached
            )


def _joined(rows: list[dict[str, Any]]) -> Iterator[Activity]:
    for row in rows:
        release = row["release"] or row["version"]
        small = f"{row['slots']} slot{'' if row['slots'] == 1 else 's'}"
        after = f" joined with version {release}" if release else " joined"
        yield Activity("workers", _at(row["at"]), "", f"{row['host']}:{row['pid']}", after, small)


def _at(moment: str) -> datetime:
    return datetime.fromisoformat(moment)

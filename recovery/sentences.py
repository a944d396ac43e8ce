"""Sentences that remember which of their words are names and which are times.

A terminal prints them; a page sets names in type and lets times tick, so that time alone is no news to it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from .words import distance, duration


@dataclass(frozen=True, slots=True)
class Name:
    """Of a step, a worker, a basket: hostile text, set apart."""

    text: str


@dataclass(frozen=True, slots=True)
class Time:
    at: datetime
    form: str  # ago (3 s ago, in 3 s), lasting (48 s), moment (09:00 tomorrow)


Part = str | Name | Time


@dataclass(frozen=True, slots=True)
class Sentence:
    parts: tuple[Part, ...]
    now: datetime

    def __str__(self) -> str:
        return "".join(self._said(part) for part in self.parts)

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)

    def __bool__(self) -> bool:
        return bool(self.parts)

    def words(self, time: Time) -> str:
        away = (time.at - self.now).total_seconds()
        if time.form == "lasting":
            return duration(-away)
        return distance(away) if time.form == "ago" else moment(time.at, self.now)

    def _said(self, part: Part) -> str:
        if isinstance(part, Time):
            return self.words(part)
        return part.text if isinstance(part, Name) else part


def moment(at: datetime, now: datetime) -> str:
    """09:00, 09:00 tomorrow, 09:00 on 3 May. In UTC; times.js says it in the reader's own zone."""
    at, now = at.astimezone(UTC), now.astimezone(UTC)
    clock = f"{at:%H:%M}" if abs(at - now) >= timedelta(minutes=10) else f"{at:%H:%M:%S}"
    days = (at.date() - now.date()).days
    if days in (-1, 0, 1):
        return clock + {-1: " yesterday", 0: "", 1: " tomorrow"}[days]
    return f"{clock} on {at:%-d %B}" + (f" {at.year}" if at.year != now.year else "")


def ago(at: datetime) -> Time:
    return Time(at, "ago")


def lasting(since: datetime) -> Time:
    return Time(since, "lasting")


def until(at: datetime) -> Time:
    return Time(at, "moment")


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def stop(text: str) -> str:
    """What somebody or some program said, as the end of a sentence."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def listed(names: list[str]) -> list[Part]:
    """a, b and c."""
    parts: list[Part] = []
    for i, name in enumerate(names):
        parts += [" and " if i == len(names) - 1 else ", "] if i else []
        parts.append(Name(name))
    return parts

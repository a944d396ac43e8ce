"""Terms become a condition that an index answers, and hints about what was not understood.

What cannot be read matches nothing, so that a slip never shows, or exports, more than was asked for.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from string import hexdigits
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from workflows.models import Status

from . import troubles
from .known import Known
from .language import INPUT, LONGEST, UNITS
from .parsing import Hint, Term, clean, parse, without

NOTHING = Q(pk__in=[])
SKEW = timedelta(minutes=5)  # by which the clocks that make ids may differ from the database's
SHORTEST = 4  # characters of an id, as a bare word
COMPARED = re.compile(r"(>=|<=|>|<|=|)(\d{1,9})([a-z]*)", re.ASCII)
LOOKUPS = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte", "=": "exact", "": "exact"}


@dataclass(frozen=True, slots=True)
class Search:
    """What was typed, understood as far as possible."""

    text: str
    terms: list[Term] = field(default_factory=list)
    hints: list[Hint] = field(default_factory=list)
    wanted: Q = field(default_factory=Q)

    @property
    def chips(self) -> list[tuple[Term, str]]:
        """Each term, and the search without it."""
        return [(term, without(self.terms, term)) for term in self.terms]


class _Unreadable(Exception):
    """Its text is the hint."""


def search(text: str, known: Known | None = None) -> Search:
    known = known or Known()
    terms, hints = parse(text)
    wanted = Q()
    for term in terms:
        try:
            match = _match(term, terms, known)
        except _Unreadable as unreadable:
            hints.append(Hint(str(unreadable), term.start))
            wanted &= NOTHING
        else:
            wanted &= ~match if term.negated else match
    if hints and not terms:
        wanted = NOTHING
    return Search(clean(text)[:LONGEST], terms, sorted(hints, key=lambda hint: hint.start), wanted)


def created(start: datetime | None = None, end: datetime | None = None) -> Q:
    """By id: ids begin with the time, so that an index finds where to begin and to end. What is younger than a day is
    also asked by the database's clock; further back nobody minds by how much two clocks differ."""
    wanted, lately = Q(), timezone.now() - timedelta(days=1)
    if start:
        wanted &= Q(pk__gte=_id_at(start - SKEW), created_at__gte=start) if start > lately else Q(pk__gte=_id_at(start))
    if end:
        wanted &= Q(pk__lt=_id_at(end + SKEW), created_at__lt=end) if end > lately else Q(pk__lt=_id_at(end))
    return wanted


def _match(term: Term, terms: list[Term], known: Known) -> Q:
    if term.key.startswith(INPUT):
        return _input(term, known)
    if term.key == "version" and not any(other.key == "name" and not other.negated for other in terms):
        raise _Unreadable("version: needs a name beside it, such as name:order version:2.")
    return _MATCHES[term.key](term.value, known)


def _word(value: str, known: Known) -> Q:
    match = _name(value, known) | Q(key=value)
    digits = _digits(value)
    return match | _beginning(digits) if len(digits) >= SHORTEST else match


def _status(value: str, known: Known) -> Q:
    if value.lower() not in Status.values:
        raise _Unreadable(f"There is no status {value!r}; there are {', '.join(Status.values)}.")
    return Q(status=value.lower())


def _name(value: str, known: Known) -> Q:
    if not value.endswith("*"):
        return Q(name=value)
    return Q(name__in=[name for name in known.names if name.startswith(value.rstrip("*"))])


def _key(value: str, known: Known) -> Q:
    return Q(key=value)


def _id(value: str, known: Known) -> Q:
    digits = _digits(value)
    if not digits:
        raise _Unreadable(f"{value!r} is no id, nor the beginning of one: those have only the digits 0-9 and a-f.")
    return _beginning(digits)


def _step(value: str, known: Known) -> Q:
    return troubles.named(troubles.STEP, {"step": value})


def _error(value: str, known: Known) -> Q:
    return troubles.named(troubles.ERROR, {"error": value})


def _worker(value: str, known: Known) -> Q:
    host, colon, pid = value.rpartition(":")
    if not colon:
        return troubles.among(troubles.WORKER, value)
    if not (host and pid.isascii() and pid.isdigit() and len(pid) < 10):
        raise _Unreadable(f"{value!r} is no worker; write it as worker:host or worker:host:pid.")
    return troubles.among(f"{troubles.WORKER} AND k.pid = %s", host, int(pid))


def _attempts(value: str, known: Known) -> Q:
    read = COMPARED.fullmatch(value)
    if not read or read[3]:
        raise _Unreadable(f"{value!r} is no number of attempts; write attempts:2 or attempts:>1.")
    return Q(**{f"recovery_attempts__{LOOKUPS[read[1]]}": int(read[2])})


def _age(value: str, known: Known) -> Q:
    read = COMPARED.fullmatch(value)
    if not read or read[1] not in (">", ">=", "<", "<=") or read[3] not in UNITS:
        raise _Unreadable(f"{value!r} is no age; write age:>10m or age:<2h, with s, m, h, d or w.")
    try:
        then = timezone.now() - timedelta(seconds=int(read[2]) * UNITS[read[3]])
        return created(end=then) if read[1].startswith(">") else created(start=then)
    except OverflowError:
        raise _Unreadable(f"{value!r} is older than the calendar.") from None


def _is(value: str, known: Known) -> Q:
    if value.lower() not in IS:
        raise _Unreadable(f"There is no is:{value}; there are {', '.join(IS)}.")
    return IS[value.lower()]()


def _basket(value: str, known: Known) -> Q:
    return troubles.among(troubles.BASKET, value)


def _version(value: str, known: Known) -> Q:
    if not (value.isascii() and value.isdigit() and len(value) < 10):
        raise _Unreadable(f"{value!r} is no version; it is a whole number, such as version:2.")
    return Q(version=int(value))


def _input(term: Term, known: Known) -> Q:
    name = term.key.removeprefix(INPUT)
    if name not in known.fields:
        there = f"there are {', '.join(known.fields)}" if known.fields else "there are none"
        raise _Unreadable(
            f"The field {name} is not searchable ({there}); a definition names those that are with search=."
        )
    return Q(search__contains=[f"{name}={term.value}"[:300]])


def _digits(value: str) -> str:
    digits = value.replace("-", "").lower()
    return digits if len(digits) <= 32 and not set(digits) - set(hexdigits) else ""


def _beginning(digits: str) -> Q:
    return Q(pk__range=(UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))))


def _id_at(moment: datetime) -> UUID:
    return troubles.first_id(int(moment.timestamp() * 1000))


IS: dict[str, Callable[[], Q]] = {
    "orphan": lambda: troubles.among(troubles.ORPHAN),
    "late": lambda: troubles.among(troubles.LATE),
    "uncertain": lambda: troubles.among(troubles.UNCERTAIN, troubles.reviewed()),
    "blocked": lambda: troubles.among(troubles.BLOCKED),
    "held": lambda: troubles.among(troubles.HELD, troubles.reviewed()),
    "dead-letter": lambda: Q(status=Status.FAILED) & ~Q(error__has_key="discarded"),
}
_MATCHES: dict[str, Callable[[str, Known], Q]] = {
    "": _word,
    "status": _status,
    "name": _name,
    "key": _key,
    "id": _id,
    "step": _step,
    "error": _error,
    "worker": _worker,
    "attempts": _attempts,
    "age": _age,
    "is": _is,
    "basket": _basket,
    "version": _version,
}

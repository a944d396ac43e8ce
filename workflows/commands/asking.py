"""Reading what was typed: JSON, times, numbers, ids, and who typed it."""

import getpass
import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from datetime import UTC, datetime
from string import hexdigits
from typing import Any
from uuid import UUID

from django.db.models import Q, TextField, Value
from django.db.models.functions import Cast, Replace

from ..conf import settings
from ..errors import BadInput, BadValue, NotFound, Refused
from ..models import Workflow
from ..values import parse
from .table import clean

ENOUGH = 8  # characters of an id


def read_json(given: str, what: str) -> Any:
    """JSON as it stands, or from standard input if a dash was given: a shell passes no argument of more than 128 kB."""
    return parse(_standard_input(what) if given == "-" else given, what)


def read_object(given: str, what: str) -> dict[str, Any]:
    value = read_json(given, what)
    if not isinstance(value, dict):
        raise BadInput(f'{what} must be a JSON object, such as {{"name": "value"}}.')
    return value


def read_time(given: str) -> datetime:
    try:
        at = datetime.fromisoformat(given)
    except ValueError:
        raise BadInput(
            f"{clean(given)!r} is no time; write it as 2030-01-31T09:00:00+00:00, or with Z at its end."
        ) from None
    if at.tzinfo is None:
        raise BadInput(f"The time {at} has no time zone; write Z or an offset such as +02:00 at its end.")
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise BadInput(f"The time {at} lies outside the calendar.") from None


def number(low: int, high: int) -> Callable[[str], int]:
    """An argparse type: a whole number between the two."""

    def read(given: str) -> int:
        if given.isascii() and given.isdigit() and len(given) < 10 and low <= int(given) <= high:
            return int(given)
        raise ArgumentTypeError(f"{clean(given)!r} is no whole number from {low} to {high}.")

    return read


def find_id(given: str) -> UUID:
    """The id that was given in full, or by at least eight characters of its beginning or its end."""
    digits = given.strip().replace("-", "").lower()
    if not digits or len(digits) > 32 or set(digits) - set(hexdigits):
        raise NotFound(f"{clean(given)!r} is no workflow id.")
    if len(digits) == 32:
        return UUID(digits)
    if len(digits) < ENOUGH:
        raise BadInput(f"{digits!r} is too short for an id; give at least {ENOUGH} characters of its beginning or end.")
    bare = Replace(Cast("pk", TextField()), Value("-"), Value(""), output_field=TextField())
    rows = Workflow.objects.using(settings().database).annotate(digits=bare)
    begins = Q(pk__range=(UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))))  # by the primary key's index
    found = list(rows.filter(begins | Q(digits__endswith=digits)).values_list("pk", flat=True)[:2])
    if not found:
        raise NotFound(f"No workflow has an id that begins or ends with {digits}.")
    if len(found) > 1:
        raise Refused(f"{digits} stands for several workflows, {found[0]} and {found[1]} among them; give more of it.")
    return found[0]


def who() -> str:
    """The operating system's user, for the diary."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = str(os.getuid())
    return f"cli:{clean(name, 100)}"


def _standard_input(what: str) -> str:
    limit = settings().max_value_bytes * 2
    content = sys.stdin.buffer.read(limit + 1)
    if len(content) > limit:
        raise BadValue(f"{what} is too large: at most {settings().max_value_bytes:,} bytes are stored.")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise BadValue(f"{what} is not UTF-8; convert it.") from None

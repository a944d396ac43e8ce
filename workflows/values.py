"""What may be stored: plain JSON, without the things Postgres or a reader would choke on.

Everything is encoded here, before it enters a transaction, so that one bad value harms nobody else's batch.
"""

import json
import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from .conf import settings
from .errors import BadValue

Json = Any
NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
SCALARS = (str, int, float, bool, type(None))
LONGEST = 1000 * 365 * 86400.0  # seconds; what Postgres or Python cannot count would break whoever reads it
LAST_YEAR = 9000

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def encode(value: Json, what: str) -> str:
    """The JSON text of a value, or a sentence why it cannot be stored. `what` names it: "the result of step charge"."""
    limits = settings()
    try:
        text = _encode(value)
        size = len(text.encode())
    except RecursionError:
        raise BadValue(f"{what} is nested too deeply: at most {limits.max_value_depth} levels are stored.") from None
    except UnicodeEncodeError:
        raise BadValue(f"{what} holds half a surrogate pair, which is no text; repair the string.") from None
    except TypeError as error:
        raise BadValue(f"{what} is not JSON: {error}; return strings, numbers, lists and dicts.") from None
    except ValueError as error:
        raise BadValue(f"{what} is not JSON: {error}.") from None
    if size > limits.max_value_bytes:
        raise BadValue(
            f"{what} is {size:,} bytes; at most {limits.max_value_bytes:,} are stored. Store it elsewhere and pass a reference."
        )
    if "\\u0000" in text and NUL.search(text):
        raise BadValue(f"{what} holds a NUL character, which Postgres cannot store; remove it.")
    if len(text) > 2 * limits.max_value_depth and _depth(value) > limits.max_value_depth:
        raise BadValue(f"{what} is nested too deeply: at most {limits.max_value_depth} levels are stored.")
    return text


def stored(value: Json, text: str) -> Json:
    """The value as a replay will see it: tuples have become lists, keys strings."""
    return value if isinstance(value, SCALARS) else json.loads(text)


def parse(text: str, what: str) -> Json:
    """Read JSON that a person typed: no NaN, no duplicate keys, nothing too large to store."""
    if len(text) > settings().max_value_bytes * 2:
        raise BadValue(f"{what} is too large: at most {settings().max_value_bytes:,} bytes are stored.")
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError:
        raise BadValue(
            f"{what} is nested too deeply: at most {settings().max_value_depth} levels are stored."
        ) from None
    except ValueError as error:
        raise BadValue(f"{what} is not JSON: {error}.") from None
    encode(value, what)
    return value


def text(value: str, what: str, limit: int) -> str:
    """A short text for a column: a key, a name, a basket."""
    if not isinstance(value, str):
        raise BadValue(f"{what} must be a text, not {type(value).__name__}.")
    if len(value) > limit:
        raise BadValue(f"{what} is {len(value)} characters long; at most {limit} are stored.")
    if "\0" in value:
        raise BadValue(f"{what} holds a NUL character, which Postgres cannot store; remove it.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadValue(f"{what} holds half a surrogate pair, which is no text; repair the string.") from None
    return value


def duration(value: timedelta | float, what: str) -> float:
    """Seconds that can be added to any time of this millennium."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if math.isnan(seconds) or seconds > LONGEST:
        raise BadValue(f"{what} cannot last {seconds:g} s; a thousand years is the most.")
    return max(0.0, seconds)


def moment(value: datetime, what: str) -> datetime:
    """A point in time that every reader's calendar has."""
    if not isinstance(value, datetime):
        raise BadValue(f"{what} must be a datetime, not {type(value).__name__}.")
    if value.utcoffset() is None:
        raise BadValue(f"{what}, {value}, has no time zone; give an aware datetime.")
    try:
        found = value.astimezone(UTC)
    except OverflowError:
        found = None
    if found is None or found.year > LAST_YEAR:
        raise BadValue(f"{what}, {value}, is too far away; {LAST_YEAR} is the last year.")
    return found


def _depth(value: Json) -> int:
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, (dict, list, tuple))]:
        depth += 1
        level = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
    return depth


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(n for n in names if names.count(n) > 1)!r} appears twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")

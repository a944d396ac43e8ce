"""Printing. Names, keys, inputs and errors are hostile text: no control character of theirs reaches a terminal."""

import json
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone

CELL = 60  # characters of a cell that are shown
BLANK = {"Zl", "Zp"}  # separators that would break a line
GONE = {"Cc", "Cf", "Cs", "Co", "Cn"}  # controls, invisible ones that turn text around, halves of pairs


def clean(value: object, limit: int = CELL) -> str:
    """One line without control characters, cut to its limit."""
    text = "" if value is None else str(value)
    seen = text[: limit * 4]  # whatever its size, no more than this is looked at
    kept = "".join(_safe(letter) for letter in seen).strip()
    return kept if len(kept) <= limit and len(seen) == len(text) else f"{kept[: limit - 1]}…"


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns as wide as their widest cell."""
    lines = [tuple(headings), *(tuple(clean(cell) for cell in row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headings))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def pairs(rows: Iterable[tuple[str, object]], limit: int = 400) -> str:
    """One name and its value per line; what is empty is left out."""
    told = [(name, clean(value, limit)) for name, value in rows if value not in (None, "", {}, [])]
    width = max((len(name) for name, _ in told), default=0)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in told)


def moment(at: datetime | None) -> str:
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def short_json(value: Any) -> str:
    """A value for a cell; the full one is in the JSON."""
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def to_json(value: Any) -> str:
    return json.dumps(value, indent=2, default=_plain)


def _safe(letter: str) -> str:
    if letter in "\n\r\t":
        return " "
    kind = unicodedata.category(letter)
    return " " if kind in BLANK else "" if kind in GONE else letter


def _plain(value: Any) -> str:
    return timezone.localtime(value, UTC).isoformat() if isinstance(value, datetime) else str(value)

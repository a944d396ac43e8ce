"""A workflow's variables are typed by their first value: what was a number does not become a text unnoticed."""

from collections.abc import Mapping
from typing import Any

from .errors import BadValue


def type_of(value: Any) -> str:
    """The words of seed 3, and `json` for what it does not name."""
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, int):
        return "LONG"
    if isinstance(value, float):
        return "DOUBLE"
    return "STRING" if isinstance(value, str) else "JSON"


def check_types(present: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    for name, value in new.items():
        before = present.get(name)
        if before is not None and value is not None and type_of(before) != type_of(value):
            raise BadValue(f"The variable {name} is a {type_of(before)}; {value!r} is a {type_of(value)}.")

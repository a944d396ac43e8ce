"""What an act changed, as (name, before, after). Pure."""

import json
import re
from collections.abc import Mapping
from typing import Any

from .redacting import redact

LONGEST = 200  # characters of a value in a row
LAST = ("wake_at", "fence")  # for whoever looks closely
MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:\+00:00|Z)")
Difference = tuple[str, str, str]


def differences(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, *, whole: bool) -> list[Difference]:
    """Only what differs; what is secret stays hidden from those who may not see payloads."""
    old, new = dict(before or {}), dict(after or {})
    names = [name for name in old | new if old.get(name) != new.get(name) and name != "id"]
    names.sort(key=lambda name: LAST.index(name) if name in LAST else -1)
    if not whole:
        old, new = redact(old), redact(new)
    return [(name.replace("_", " "), _said(old, name), _said(new, name)) for name in names]


def _said(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    if value is None or value == "":
        return "–"
    if isinstance(value, str) and (moment := MOMENT.fullmatch(value)):
        return f"{moment[1]} {moment[2]} UTC"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"

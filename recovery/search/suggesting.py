"""What the search box offers: the keys, and the values of those that have few."""

from workflows.models import Status

from .known import Known
from .language import INPUT, KEYS
from .matching import IS

MOST = 60


def suggestions(known: Known | None = None) -> list[tuple[str, str]]:
    """Each with what it means, for a <datalist>."""
    known = known or Known()
    values = [
        *((f"status:{status}", "") for status in Status.values),
        *((f"is:{word}", "") for word in IS),
        *((f"name:{_quoted(name)}", "") for name in known.names),
    ]
    keys = [(f"{key}:", meaning) for key, meaning in KEYS.items() if key not in ("status", "is")]
    fields = [(f"{INPUT}{field}:", "a field of its input") for field in known.fields]
    return [*keys, *fields, *values][:MOST]


def _quoted(name: str) -> str:
    return f'"{name}"' if " " in name else name

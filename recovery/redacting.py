"""What is not for everybody's eyes: values whose key says so. Only who may see payloads sees them."""

import json
import re
from typing import Any

HIDDEN = "•••• redacted"
SECRET = re.compile(
    r"pass(word|wd|phrase|code)?$|passw|secret|token|authori[sz]ation|credential|api.?key|private.?key|cookie|session.?id"
    r"|\bcard|card.?(number|no)?$|cvv|cvc|\biban|\bpin$|\bssn",
    re.IGNORECASE,
)
LONGEST = 20_000  # characters shown on a page; the whole is downloaded


def redact(value: Any) -> Any:
    """The value with the contents of secret keys taken out, however deep they are."""
    if isinstance(value, dict):
        return {key: HIDDEN if is_secret(key) and each is not None else redact(each) for key, each in value.items()}
    if isinstance(value, list):
        return [redact(each) for each in value]
    return value


def is_secret(key: str) -> bool:
    return SECRET.search(key) is not None


def shown(value: Any, *, whole: bool) -> str:
    """As a page prints it."""
    text = json.dumps(value if whole else redact(value), ensure_ascii=False, indent=1)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"

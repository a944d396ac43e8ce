"""Text becomes terms, each with its place. Pure, and total: there is no text it cannot read."""

import re
from dataclasses import dataclass

from .language import INPUT, KEYS, LONGEST, MOST_TERMS

TERM = re.compile(r'(?:[^\s"]|"[^"]*"?)+')
KEYED = re.compile(r"(-?)([A-Za-z_]+(?:\.[\w-]+)?):(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Term:
    text: str  # as it was typed
    start: int
    key: str  # "" for a bare word
    value: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Hint:
    sentence: str
    start: int = 0


def parse(text: str) -> tuple[list[Term], list[Hint]]:
    seen = clean(text)
    hints = [Hint(f"Only the first {LONGEST} characters are read.", LONGEST)] if len(seen) > LONGEST else []
    found = list(TERM.finditer(seen[:LONGEST]))
    if len(found) > MOST_TERMS:
        hints.append(Hint(f"Only the first {MOST_TERMS} terms are read.", found[MOST_TERMS].start()))
    terms: list[Term] = []
    for match in found[:MOST_TERMS]:
        term, hint = _read(match[0], match.start())
        terms += [term] if term else []
        hints += [hint] if hint else []
    return terms, hints


def clean(text: str) -> str:
    """What Postgres can be asked for: no zero bytes, no halves of pairs."""
    return text.encode("utf-8", "ignore").decode().replace("\0", "").strip()


def without(terms: list[Term], one: Term) -> str:
    """The search once a term is taken away."""
    return " ".join(term.text for term in terms if term is not one)


def _read(text: str, start: int) -> tuple[Term | None, Hint | None]:
    keyed = KEYED.fullmatch(text)
    if not keyed:
        negated = text.startswith("-") and len(text) > 1
        value = _unquoted(text[1:] if negated else text)
        if value:
            return Term(text, start, "", value, negated), None
        return None, Hint("There is nothing between the quotes.", start)
    minus, key, value = keyed[1], keyed[2], _unquoted(keyed[3])
    known = key.lower() if key.lower() in KEYS else key if key.startswith(INPUT) else ""
    if known and value:
        return Term(text, start, known, value, bool(minus)), None
    if known:
        return None, Hint(f"{key}: needs a value: {KEYS.get(known, 'what was given at the start')}.", start)
    # Keys of workflows often have colons in them, so it may well be one.
    whole = Term(text, start, "", _unquoted(text.removeprefix("-")), bool(minus))
    return whole, Hint(f"There is no {key}: to search by ({', '.join(KEYS)}), so it is read as a key or name.", start)


def _unquoted(text: str) -> str:
    return text.replace('"', "").strip()

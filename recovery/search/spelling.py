"""Words become a search, for whoever links to one: the other way round than parsing. Pure."""

from .parsing import parse


def spell(**words: str) -> str:
    """The search that is read as exactly these words, empty ones left out; nothing if there is none, because of a quote in
    one, a star at its end, or its length."""
    meant = {key.rstrip("_"): word for key, word in words.items() if word}
    text = " ".join(f"{key}:{_quoted(word)}" for key, word in meant.items())
    terms, hints = parse(text)
    as_meant = not hints and {term.key: term.value for term in terms} == meant
    return text if as_meant and not any(word.endswith("*") for word in meant.values()) else ""


def _quoted(word: str) -> str:
    return f'"{word}"' if any(letter.isspace() for letter in word) else word

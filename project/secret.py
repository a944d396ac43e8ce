"""Random words that belong to a data directory: made once, kept for its owner only, never in the repository."""

import os
import secrets
from pathlib import Path


def kept(directory: Path, name: str, length: int) -> str:
    """The word of that name. Made aside and linked, so that of two who make it at once one wins, wholly."""
    place = directory / name
    try:
        return place.read_text()
    except FileNotFoundError:
        pass
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = directory / f"{name}.{secrets.token_hex(8)}"
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_urlsafe(length))
    try:
        os.link(aside, place)
    except FileExistsError:
        pass
    finally:
        aside.unlink()
    return place.read_text()

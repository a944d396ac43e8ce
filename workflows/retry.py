"""When to try again: exponential with jitter, and always from the database's clock, never a sleeping thread."""

import math
import random
import traceback
from dataclasses import dataclass
from typing import Any

from django.db import InterfaceError, OperationalError

from .values import LONGEST

AWAY = {"57P01", "57P02", "57P03", "57P05"}  # the server is shutting down, starting up, or has thrown us out
VICTIM = {"40001", "40P01"}  # of a serialization failure or a deadlock: undone, and whoever was in the way has gone on
ENOUGH = 20_000  # characters of a message or a traceback worth keeping


@dataclass(frozen=True, slots=True)
class Backoff:
    """The pause after the n-th failure: first × factor^(n-1), at most `most`, give or take `jitter`."""

    first: float = 1
    factor: float = 2
    most: float = 60
    jitter: float = 0.1

    def __post_init__(self) -> None:
        if not (0 <= self.first < math.inf and self.factor >= 1 and 0 <= self.most < LONGEST and 0 <= self.jitter <= 1):
            raise ValueError(
                f"{self} would never come back, or too early; give seconds, a factor of at least 1, jitter up to 1."
            )

    def delay(self, failures: int) -> float:
        pause = min(self.most, self.first * self.factor ** min(failures - 1, 60))
        return pause * (1 + self.jitter * random.uniform(-1, 1))  # noqa: S311  (no secret)


DEFAULT = Backoff()
CONFLICTS = 10  # lost in a row: the last of them counts as a failed try
WHILE_AWAY = Backoff(0.5, most=30)  # it may be a database of the body's own, which stays away for longer than ours
AFTER_CONFLICT = Backoff(0.1, most=5, jitter=0.5)  # whoever met once should not meet again


def describe(error: BaseException) -> dict[str, Any]:
    """An error as JSON, cut to a size worth keeping, without what Postgres cannot store."""
    frames = "".join(traceback.format_exception(error))
    try:
        message = str(error)
    except Exception:
        message = "its text cannot be read"
    return {"type": type(error).__name__, "message": _clean(message), "traceback": _clean(frames)}


def is_away(error: BaseException) -> bool:
    """The database went away under a body: nobody's fault, and no failed try."""
    if not isinstance(error, (OperationalError, InterfaceError)):
        return False
    state = getattr(error.__cause__, "sqlstate", None)
    return state is None or state.startswith("08") or state in AWAY


def is_conflict(error: BaseException) -> bool:
    """The database undid a body's transaction for another's sake."""
    return isinstance(error, OperationalError) and getattr(error.__cause__, "sqlstate", None) in VICTIM


def _clean(text: str) -> str:
    text = text.replace("\0", "\\0").encode(errors="replace").decode()
    return text if len(text) <= ENOUGH else f"{text[: ENOUGH // 2]} … {text[-ENOUGH // 2 :]}"

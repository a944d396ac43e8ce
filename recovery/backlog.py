"""How far behind we are, in one sentence, while there is a backlog: after downtime, or when more comes than is done. Pure.

1,204 due, 310 a minute, about 4 min
"""

from dataclasses import dataclass

from .words import duration

WORTH_SAYING = 50  # due; fewer are gone before one has read it
SETTLED = 10.0  # seconds the oldest has been due; a burst is no backlog
MANY = 10_000  # more are not counted


@dataclass(frozen=True, slots=True)
class Backlog:
    due: int  # counted up to MANY
    oldest: float  # seconds
    a_minute: float  # ended, lately

    @property
    def is_one(self) -> bool:
        return self.due >= WORTH_SAYING and self.oldest >= SETTLED

    @property
    def words(self) -> str:
        many = self.due >= MANY
        due = f"{MANY:,}+ due" if many else f"{self.due:,} due"
        if self.a_minute < 1:
            return f"{due}, the oldest for {duration(self.oldest)}; none was done in the last minutes"
        left = duration(self.due / self.a_minute * 60)
        return f"{due}, {self.a_minute:,.0f} a minute, {'more than' if many else 'about'} {left}"


def backlog(due: int, oldest: float | None, a_minute: float | None) -> Backlog | None:
    """None while there is nothing to speak of."""
    found = Backlog(due, oldest or 0, a_minute or 0)
    return found if found.is_one else None

"""What chaos starts, and what must come of it."""

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from uuid import UUID

from workflows import resume, signal, start_many
from workflows.conf import settings
from workflows.errors import Refused
from workflows.models import Step, Workflow

PREFIX = "chaos."
POISON = "chaos.poison"
ANSWER = 1000
BOOKED = 4  # lines of each workflow in the scratch table


def _sum(n: int, count: int) -> int:
    return sum(n + k for k in range(count))


OUTPUT: dict[str, Callable[[int], Any]] = {
    "chaos.chain": lambda n: _sum(n, 6),
    "chaos.fan": lambda n: _sum(n, 3) + _sum(n, 1) + _sum(n, 2) + _sum(n, 1) + _sum(n, 1),
    "chaos.nap": lambda n: 3 * n,
    "chaos.flaky": lambda n: 2 * n,
    "chaos.desk": lambda n: _sum(n, 2) + ANSWER + n,
    "chaos.mail": lambda n: [n, n + 1],
    "chaos.books": lambda n: BOOKED * n,
    "chaos.lazy": lambda n: 2 * _sum(n, 5),
}
HARMLESS = list(OUTPUT)


class Accepted:
    """Every start that was accepted, in this process's memory: the database is asked about these, and no others."""

    def __init__(self, token: str, chance: random.Random) -> None:
        self.token, self.chance = token, chance
        self.names: dict[UUID, str] = {}
        self.numbers: dict[UUID, int] = {}
        self.twice: list[str] = []  # keys that started two
        self._letters: list[tuple[UUID, str, int]] = []

    def start(self, count: int, poisons: int = 0) -> None:
        """Start so many of random shapes, each key twice: the second time must give the same."""
        picked = [self.chance.choice(HARMLESS) for _ in range(count)] + [POISON] * poisons
        for name in sorted(set(picked)):
            first = len(self.numbers)
            numbers = range(first, first + picked.count(name))
            inputs, keys = [{"n": n} for n in numbers], [f"{self.token}-{n}" for n in numbers]
            ids = start_many(name, inputs, keys=keys)
            again = start_many(name, inputs, keys=keys)
            self.twice += [key for key, one, other in zip(keys, ids, again, strict=True) if one != other]
            for pk, n in zip(ids, numbers, strict=True):
                self.names[pk], self.numbers[pk] = name, n
                if name == "chaos.mail":
                    self._letters += [(pk, "early", n), (pk, "late", n + 1)]

    def answer(self) -> None:
        """Do what people and other systems would: resume what waits on the desk, send each letter, twice."""
        waiting = Step.objects.using(settings().database).filter(
            workflow_id__in=self.names, basket="chaos-desk", status=Step.Status.WAITING
        )
        for pk in waiting.values_list("workflow_id", flat=True)[:50]:
            _unless_over(partial(resume, pk, by="chaos", basket="chaos-desk", result=ANSWER))
        letters, self._letters = self._letters[:50], self._letters[50:]
        for pk, name, n in letters:
            for _ in range(2):
                _unless_over(partial(signal, pk, name, n, uid=f"{name}-{pk}"))

    def rows(self) -> Iterator[Workflow]:
        return Workflow.objects.using(settings().database).filter(pk__in=self.names).iterator()


def _unless_over(act: Callable[[], Any]) -> None:
    """Somebody else may have been quicker: a second answer and a letter to the finished are refused, as they should be."""
    try:
        act()
    except Refused:
        pass

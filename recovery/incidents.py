"""Incidents: recoveries by what caused them. Workers that died together, as in a restart, are one. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from .sentences import Name, Part, Sentence, count, until
from .words import duration

TOGETHER = timedelta(seconds=15)  # from one death to the next


@dataclass(slots=True)
class Incident:
    at: datetime  # of the first death
    last: datetime  # of the last
    workers: list[tuple[int, str]] = field(default_factory=list)
    silent: bool = False
    held: int = 0
    again: int = 0
    given_up: int = 0
    observed: int = 0
    open: int = 0
    seconds: float | None = None  # until the last of it ran again

    @property
    def numbers(self) -> str:
        """For the address of its recoveries."""
        return ".".join(str(number) for number, _ in self.workers)

    @property
    def state(self) -> tuple[str, str]:
        if self.open:
            return "orphan", "Under way"
        if self.given_up:
            return "failed", "Given up"
        return ("paused", "Observed") if self.observed and not self.again else ("completed", "Over")

    def sentence(self, now: datetime) -> Sentence:
        """Worker host-2:812 died 04:10: 37 held, 36 running again in 1.2 s, 1 given up."""
        took = f" in {duration(self.seconds)}" if self.seconds is not None and self.again else ""
        rest = [f"{self.held:,} held", f"{self.again:,} running again{took}"]
        rest += [f"{self.given_up:,} given up"] if self.given_up else []
        rest += [f"{self.observed:,} only observed"] if self.observed else []
        rest += [f"{self.open:,} under way"] if self.open else []
        return Sentence((*self._who(), " ", until(self.at), f": {', '.join(rest)}."), now)

    def _who(self) -> list[Part]:
        fell = "went silent" if self.silent else "died"
        if len(self.workers) == 1:
            return ["Worker ", Name(self.workers[0][1]), f" {fell}"]
        hosts = sorted({name.rpartition(":")[0] for _, name in self.workers})
        where = [Name(hosts[0])] if len(hosts) == 1 else [count(len(hosts), "host")]
        return [f"Restart: {len(self.workers)} workers on ", *where, f" {fell} together"]


def incidents(deaths: Iterable[dict[str, Any]]) -> list[Incident]:
    """Of one row for each worker that left something behind. The newest first."""
    found: list[Incident] = []
    for row in sorted(deaths, key=lambda row: (row["at"], row["worker"])):
        if not found or row["at"] - found[-1].last > TOGETHER:
            found.append(Incident(row["at"], row["at"]))
        _add(found[-1], row)
    return found[::-1]


def _add(one: Incident, row: dict[str, Any]) -> None:
    one.last = row["at"]
    one.workers.append((row["worker"], row["worker_name"] or str(row["worker"])))
    one.silent = one.silent or row["silent"]
    for name in ("held", "again", "given_up", "observed", "open"):
        setattr(one, name, getattr(one, name) + row[name])
    if row["seconds"] is not None:
        one.seconds = max(one.seconds or 0, row["seconds"])

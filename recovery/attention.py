"""What needs attention: one line for each group of workflows with the same trouble, the most urgent first.

What is said of a group is the verdict on the one of them that has had the trouble longest. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from .search import spell
from .sentences import Sentence
from .verdict import Kind, Seen, Verdict, verdict

SHOWN = 8

# In the order of urgency: in which view of the list the whole group is, and whether recovering it is what helps.
KINDS = {
    Kind.ORPHAN: ("running", True),
    Kind.LEFT: ("running", True),
    Kind.GIVEN_UP: ("failed", True),
    Kind.CORRUPT: ("waiting", False),
    Kind.UNCERTAIN: ("waiting", False),
    Kind.REVIEW: ("waiting", False),
    Kind.BLOCKED: ("waiting", False),
    Kind.NO_CODE: ("waiting", False),
    Kind.NO_WORKER: ("waiting", False),
    Kind.OVERRUNNING: ("running", False),
    Kind.LATE: ("waiting", False),
    Kind.BUSY: ("waiting", False),
    Kind.ALONE: ("waiting", False),
    Kind.LIMITED: ("waiting", False),
    Kind.BASKET: ("waiting", False),
}

# How the list is searched for a whole group.
SAID = {
    Kind.ORPHAN: {"is_": "orphan"},
    Kind.LEFT: {"is_": "orphan"},
    Kind.GIVEN_UP: {"is_": "dead-letter", "error": "RecoveryFailed"},
    Kind.UNCERTAIN: {"is_": "uncertain"},
    Kind.REVIEW: {"is_": "held"},
    Kind.BLOCKED: {"is_": "blocked"},
}


@dataclass(frozen=True, slots=True)
class Group:
    """Workflows of one name with the same trouble, as the indexes of troubled rows know them."""

    kind: Kind
    name: str
    count: int
    id: UUID  # of the one that has had it longest,
    since: datetime  # since then


@dataclass(frozen=True, slots=True)
class Line:
    group: Group
    seen: Seen
    verdict: Verdict

    @property
    def why(self) -> Sentence:
        return self.verdict.why

    @property
    def view(self) -> str:
        return KINDS[self.verdict.kind][0]

    @property
    def can_recover(self) -> bool:
        return KINDS[self.verdict.kind][1]

    @property
    def more(self) -> int:
        return self.group.count - 1

    @property
    def search(self) -> str:
        """What lists the whole group, where the language has a word for its trouble."""
        return spell(name=self.group.name, **SAID[self.verdict.kind]) if self.verdict.kind in SAID else ""


def urgent_first(groups: Sequence[Group]) -> list[Group]:
    order = {kind: place for place, kind in enumerate(KINDS)}
    return sorted(groups, key=lambda group: (order[group.kind], group.since))


def attention(groups: Sequence[Group], seen: Mapping[UUID, Seen]) -> list[Line]:
    """In the order of the groups. What has mended itself since they were found is left out; a workflow is told once."""
    lines: dict[UUID, Line] = {}
    for group in groups:
        if group.id in seen:
            lines.setdefault(group.id, Line(group, seen[group.id], verdict(seen[group.id])))
    return [line for line in lines.values() if line.verdict.needs_attention and line.verdict.kind in KINDS]

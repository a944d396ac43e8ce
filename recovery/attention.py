"""What needs attention, in words: one line for each kind and name, the most urgent first. Pure: it only looks at rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from .words import distance, duration

SHOWN = 8


@dataclass(frozen=True, slots=True)
class Found:
    """A group of workflows with the same trouble, and the facts of the one that has had it longest."""

    kind: str
    name: str
    count: int
    id: UUID
    key: str
    since: datetime
    version: int = 1
    about: str = ""  # its step, basket or message
    worker: str = ""
    attempt: int = 0
    of: int = 0
    kept: int | None = None
    due: datetime | None = None
    limit: float | None = None  # seconds it may run
    note: str = ""  # a mode, an obstacle


Part = str | tuple[str]  # a name is in a tuple


@dataclass(frozen=True, slots=True)
class Line:
    found: Found
    state: str  # names icon and colour
    word: str
    why: list[Part]
    view: str  # of the list, where the whole group is
    can_recover: bool = False

    @property
    def more(self) -> int:
        return self.found.count - 1


def attention(found: Sequence[Found], now: datetime) -> list[Line]:
    """All of it, sorted; the page shows the first of them."""
    order = {kind: place for place, kind in enumerate(KINDS)}
    known = sorted((one for one in found if one.kind in KINDS), key=lambda one: (order[one.kind], one.since))
    return [_line(one, now) for one in known]


def _line(one: Found, now: datetime) -> Line:
    state, word, view, can_recover, say = KINDS[one.kind]
    return Line(one, state, word, say(one, now), view, can_recover)


def _orphan(one: Found, now: datetime) -> list[Part]:
    died = distance((one.since - now).total_seconds())
    who: list[Part] = ["Worker ", (one.worker,), f" died {died}"] if one.worker else [f"Taken over {died}"]
    where: list[Part] = [" in step ", (one.about,)] if one.about else []
    if one.note:
        return [*who, *where, f". The mode is {one.note}: it waits until somebody recovers it."]
    return [*who, *where, f". Recovery {one.attempt} of {one.of} {_starts(one.due, now)}{_kept(one)}."]


def _starts(due: datetime | None, now: datetime) -> str:
    if due is None or (due - now).total_seconds() < 1:
        return "starts now"
    return f"starts {distance((due - now).total_seconds())}"


def _kept(one: Found) -> str:
    if one.kept is None:
        return ""
    return f"; {one.kept} step{' is' if one.kept == 1 else 's are'} kept"


def _given_up(one: Found, now: datetime) -> list[Part]:
    times = {1: "once", 2: "twice", 3: "three times"}.get(one.attempt, f"{one.attempt} times")
    if one.about:
        return ["Step ", (one.about,), f" killed its worker {times}. Waiting for you."]
    return [f"Its worker died {times} in a row. Waiting for you."]


def _uncertain(one: Found, now: datetime) -> list[Part]:
    return ["Its worker died in ", (one.about,), "; whether it took effect is unknown. Find out, then resume it."]


def _review(one: Found, now: datetime) -> list[Part]:
    return [(one.about,), " went wrong and asks for a look; it goes on when somebody resumes it."]


def _corrupt(one: Found, now: datetime) -> list[Part]:
    return [f"Its record does not fit together: {one.about or 'see its diary'}."]


def _blocked(one: Found, now: datetime) -> list[Part]:
    return [f"{one.about.rstrip('.') or 'The code does not fit what is recorded'}. No attempt is burned."]


def _no_code(one: Found, now: datetime) -> list[Part]:
    they = "It continues by itself" if one.count == 1 else "They continue by themselves"
    return ["No running worker has the code of ", (one.name,), f" v{one.version}. {they} when one starts."]


def _overrunning(one: Found, now: datetime) -> list[Part]:
    return [f"It may run {duration(one.limit or 0)} and has been running for {_age(one, now)}."]


def _late(one: Found, now: datetime) -> list[Part]:
    waited = f"Due for {_age(one, now)}"
    if one.note:
        return [f"{waited}, and nobody takes it: {one.note}."]
    return [f"{waited}. Nothing stands in its way: all slots are busy, or the backlog before it is long."]


def _waiting(one: Found, now: datetime) -> list[Part]:
    return ["Waits for a person in basket ", (one.about,), f" for {_age(one, now)}."]


def _age(one: Found, now: datetime) -> str:
    return duration((now - one.since).total_seconds())


# kind -> state, word, view of the list, whether recovering it is what helps, the sentence. In the order of urgency.
KINDS = {
    "orphan": ("orphan", "Orphan", "running", True, _orphan),
    "given up": ("failed", "Given up", "failed", True, _given_up),
    "beyond repair": ("failed", "Beyond repair", "waiting", False, _corrupt),
    "uncertain": ("orphan", "Uncertain", "waiting", False, _uncertain),
    "held for review": ("orphan", "For review", "waiting", False, _review),
    "blocked": ("paused", "Blocked", "waiting", False, _blocked),
    "no code": ("paused", "Blocked", "waiting", False, _no_code),
    "overrunning": ("orphan", "Overrunning", "running", False, _overrunning),
    "late": ("queued", "Late", "waiting", False, _late),
    "waiting": ("paused", "For people", "waiting", False, _waiting),
}

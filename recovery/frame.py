"""What surrounds every page: rail, breadcrumb, time range, status strip, user and role. A view needs one call."""

from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest, QueryDict

from .rail import Entry, address, entries
from .ranges import RANGES, Range
from .strips import Strip, strips

PLACE = ("range", "from", "to", "before", "ids", "live")  # not carried over when the time range changes


@dataclass(frozen=True, slots=True)
class Choice:
    word: str
    url: str
    on: bool


@dataclass(frozen=True, slots=True)
class Frame:
    here: str
    title: str
    crumbs: list[tuple[str, str]] = field(default_factory=list)  # word, URL
    rail: list[Entry] = field(default_factory=list)
    strips: list[Strip] = field(default_factory=list)
    range: Range | None = None
    ranges: list[Choice] = field(default_factory=list)
    kept: list[tuple[str, str]] = field(default_factory=list)  # what the form of a custom range carries along
    user: str = ""
    role: str = ""
    staff: bool = False
    leave: str = ""  # where one signs out, if the project has such a place
    live: bool = False  # whether it is worth asking again


def around(
    request: HttpRequest,
    here: str,
    title: str,
    *,
    crumbs: list[tuple[str, str]] | None = None,
    range: Range | None = None,
) -> dict[str, Any]:
    """The context of a page. `here` is its name in the rail; give a range only if the page shows one."""
    kept = _kept(request)
    frame = Frame(
        here=here,
        title=title,
        crumbs=crumbs or [],
        rail=entries(here),
        strips=strips(),
        range=range,
        ranges=[_choice(kept, key, range) for key in RANGES] if range else [],
        kept=[(key, value) for key, values in kept.lists() for value in values],
        **_who(request),
        live=True,
    )
    return {"frame": frame, "may_act": request.user.has_perm("rekindle.act_on_workflow")}


def bare(title: str, request: HttpRequest | None = None) -> dict[str, Any]:
    """Around an error: nothing is counted. Without a request there is no question to the database at all."""
    who = _who(request) if request else {}
    return {"frame": Frame(here="", title=title, rail=entries("", counted=False), **who)}


def role(request: HttpRequest) -> str:
    if request.user.has_perm("rekindle.configure"):
        return "admin"
    if request.user.has_perm("rekindle.act_on_workflow"):
        return "operator"
    return "viewer" if request.user.has_perm("rekindle.view_workflow") else "no role"


def _who(request: HttpRequest) -> dict[str, Any]:
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {}
    return {
        "user": user.get_username(),
        "role": role(request),
        "staff": bool(getattr(user, "is_staff", False)),
        "leave": address("logout") or address("admin:logout"),
    }


def _kept(request: HttpRequest) -> QueryDict:
    kept = request.GET.copy()
    for name in PLACE:
        kept.pop(name, None)
    return kept


def _choice(kept: QueryDict, key: str, now: Range) -> Choice:
    query = kept.copy()
    query["range"] = key
    return Choice(RANGES[key][0], f"?{query.urlencode()}", key == now.key)

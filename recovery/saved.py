"""The lists people keep: one's own, or everybody's. Whoever only looks may keep lists, but not hang them on everybody's wall."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from workflows.commands.table import clean
from workflows.conf import settings
from workflows.errors import NotFound, Refused
from workflows.values import text

from .auditing import note_change
from .models import SavedView
from .queries.workflows import VIEWS

NAME = 40
SEARCH = 500
MOST = 30  # of one person; tabs are no archive
TIMES = ("range", "from", "to")


@dataclass(frozen=True, slots=True)
class Person:
    """Whose lists these are, and what the roles allow."""

    key: str
    name: str
    may_share: bool = False
    may_tidy: bool = False  # what others have shared

    def may_change(self, view: SavedView) -> bool:
        return view.owner == self.key or (view.shared and self.may_tidy)


def person(user: AbstractBaseUser | AnonymousUser) -> Person:
    """By the key of the row: names are given away again, keys are not."""
    may_share, may_tidy = (user.has_perm(f"rekindle.{what}") for what in ("act_on_workflow", "configure"))  # type: ignore[union-attr]
    return Person(str(user.pk)[:255], user.get_username()[:200], may_share, may_tidy)


def seen_by(who: Person) -> QuerySet[SavedView]:
    return SavedView.objects.using(settings().database).filter(Q(owner=who.key) | Q(shared=True))


def keep(who: Person, *, name: str, shared: bool, view: str, search: str, times: Mapping[str, str]) -> SavedView:
    """Refused if the name is taken, among what this person sees."""
    text(search, "The search", SEARCH)
    new = SavedView(owner=who.key, owner_name=who.name, view=view, search=search, range=written(times))
    return _write(who, new, name, shared)


def change(who: Person, pk: int, *, name: str, shared: bool) -> SavedView:
    return _write(who, one(who, pk), name, shared)


def remove(who: Person, pk: int) -> SavedView:
    with transaction.atomic(using=settings().database):
        view = one(who, pk)
        if view.shared:
            note_change("delete", "view", view, by=who.name, via="page", before=_told(view), after=None)
        seen_by(who).filter(pk=pk).delete()
    return view


def one(who: Person, pk: int) -> SavedView:
    """The one to change, if this person may."""
    view = seen_by(who).filter(pk=pk).first()
    if view is None:
        raise NotFound("This view is gone, or it is not yours.")
    if not who.may_change(view):
        raise Refused(f"Nothing was changed: {view.name} is {view.owner_name}'s; save one of your own.")
    return view


def written(times: Mapping[str, str]) -> str:
    """The range as one text: 24h, or from/to."""
    if times.get("from") or times.get("to"):
        return f"{times.get('from', '')}/{times.get('to', '')}"[:80]
    return times.get("range", "")[:80]


def times_of(view: SavedView) -> dict[str, str]:
    """As an address gives them."""
    begin, slash, end = view.range.partition("/")
    given = {"from": begin, "to": end} if slash else {"range": begin}
    return {name: value for name, value in given.items() if value}


# -- parts ------------------------------------------------------------------------------------------------------------


def _write(who: Person, view: SavedView, name: str, shared: bool) -> SavedView:
    name = clean(text(name.strip(), "The name", NAME), NAME)
    if not name:
        raise Refused("Nothing was saved: give the view a name.")
    if shared and not who.may_share:
        raise Refused("Nothing was saved: sharing a view needs the permission rekindle.act_on_workflow.")
    taken = Refused(f"Nothing was saved: there is a view called {name} already; give it another name.")
    if name.casefold() in {word.casefold() for word, _ in VIEWS.values()}:
        raise taken
    before = _told(view) if view.pk and view.shared else None
    view.name, view.shared = name, shared
    try:
        with transaction.atomic(using=settings().database):
            if seen_by(who).filter(name__iexact=name).exclude(pk=view.pk).exists():
                raise taken
            if not view.pk and seen_by(who).filter(owner=who.key).count() >= MOST:
                raise Refused(f"Nothing was saved: {MOST} views are the most; delete one first.")
            view.save(using=settings().database)
            after = _told(view) if shared else None
            if before != after:
                act = "change" if before and after else "share" if after else "unshare"
                note_change(act, "view", view, by=who.name, via="page", before=before, after=after)
    except IntegrityError:  # somebody was faster
        raise taken from None
    return view


def _told(view: SavedView) -> dict[str, Any]:
    return {name: getattr(view, name) for name in ("name", "view", "search", "range") if getattr(view, name)}

"""The dialog before an act on several workflows: those that were ticked, or everything that matches.

Everything that matches becomes a batch. Its form carries how many somebody saw and the newest of them, so that neither
more than that nor anything newer is hit; the plan is made for a sample, and says so.
"""

import secrets
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from workflows.errors import Refused
from workflows.values import text

from .. import asking, batches, frame
from ..asking import ACTS, Act, Wish
from ..models import Batch
from ..queries import baskets, workflow
from ..queries import batches as queries
from ..wishes import REASON
from .ask import BASKET, SHOWN, TYPED, ask, basket_of, safe_back
from .door import ACT, SEE, is_htmx, needs
from .workflows import Asked, asked_by


@require_http_methods(["GET", "HEAD", "POST"])
@needs(SEE, ACT)
def ask_many(request: HttpRequest, act: str) -> HttpResponseBase:
    if "all" not in request.GET:
        return ask(request, act)
    if act not in ACTS or act not in batches.VERBS:
        raise Http404(f"There is no act {act!r} for many workflows; there are {', '.join(batches.VERBS)}.")
    asked = asked_by(request)
    if request.method != "POST":
        return _draw(request, ACTS[act], asked)
    try:
        begun = _begin(request, ACTS[act], asked)
    except Refused as refusal:
        return _draw(request, ACTS[act], asked, str(refusal), 409)
    if is_htmx(request):
        return HttpResponse(status=204, headers={"HX-Redirect": reverse("rekindle:batch", args=[begun.pk])})
    return redirect("rekindle:batch", begun.pk)


def _begin(request: HttpRequest, act: Act, asked: Asked) -> Batch:
    form = request.POST
    confirmed, newest = _number(form.get("count", "")), _id(form.get("newest", ""))
    if not confirmed or not newest:
        raise Refused("Nothing was done: the form did not say what you saw. Look at it once more.")
    if confirmed > TYPED and _number(form.get("number", "")) != confirmed:
        raise Refused(f"Nothing was done: type {confirmed}, the number of workflows, to confirm.")
    if act.name == "move" and not _to(request):
        raise Refused("Nothing was done: name the basket they shall wait in.")
    if asked.search.hints:
        raise Refused(f"Nothing was done: {asked.search.hints[0].sentence} Mend the search first.")
    return batches.begin(
        act.name,
        queries.workflows(asked.wanted, newest),
        by=request.user.get_username(),
        via="page",
        reason=text(form.get("reason", "").strip(), "The reason", REASON),
        chosen=_words(asked),
        query=asked.url().partition("?")[2],
        basket=basket_of(asked.search.terms),
        to=_to(request) if act.name == "move" else "",
        token=form.get("token", "").replace("\0", "")[:40],
        confirmed=confirmed,
    )


def _draw(request: HttpRequest, act: Act, asked: Asked, refusal: str = "", status: int = 200) -> HttpResponse:
    found = queries.matching(asked.wanted)
    foreseen = [asking.foresee(act, look, Wish()) for look in workflow.look(found.sample)]
    shown = asking.alike(foreseen)[:SHOWN]
    left = found.count - sum(each.count for each in shown)
    many = f"{found.count:,} workflow{'' if found.count == 1 else 's'}"
    hint = asked.search.hints[0].sentence if asked.search.hints else ""
    context: dict[str, Any] = {
        "act": act,
        "word": act.word,
        "subject": many,
        "many": True,
        "chosen": _words(asked),
        "foreseen": shown,
        "more": f"{left:,}" if left else "",
        "summary": asking.outlook(act, foreseen, found.count, more=found.more),
        "may_go": not hint and (found.count > len(foreseen) or any(not each.refusal for each in foreseen)),
        "wish": Wish(reason=request.POST.get("reason", "")[:REASON], to=request.POST.get("to", "")[:BASKET]),
        "places": baskets.places() if act.name == "move" else [],
        "needs_reason": True,
        "typed": str(found.count) if found.count > TYPED else "",
        "kept": [("count", found.count), ("newest", found.newest or "")],
        "trouble": refusal or hint,
        "action": asked.url("rekindle:ask_many", act.name, all="yes"),
        "token": secrets.token_hex(16),
        "back": safe_back(_given(request, "back"), asked.url()),
    }
    if is_htmx(request):
        return render(request, "rekindle/ask.html#dialog", context, status=status)
    crumbs = [("Workflows", reverse("rekindle:workflows"))]
    around = frame.around(request, "workflows", f"{act.word} {many}", crumbs=crumbs)
    return render(request, "rekindle/ask.html", around | context, status=status)


def _words(asked: Asked) -> str:
    """What was chosen: Failed, name:order*, asked for in the last hour."""
    view = "" if asked.view == "all" else asked.word
    times = f"asked for: {asked.range.words}" if asked.times else ""
    return ", ".join(part for part in (view, asked.search.text, times) if part) or asked.word


def _to(request: HttpRequest) -> str:
    return text(str(request.POST.get("to", "")).strip(), "The basket's name", BASKET)


def _number(text: str) -> int:
    digits = text.strip().replace(",", "")
    return int(digits) if digits.isdecimal() and len(digits) < 10 else 0


def _id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _given(request: HttpRequest, name: str) -> str:
    return str((request.POST if request.method == "POST" else request.GET).get(name, ""))

"""The dialog before an act, and the act: a dialog where scripts run, a page where they do not.

The form carries the fence that was seen and a token of its own. If the world moved, the answer is a 409 and the dialog
again with the new truth; pressed twice, it acts once.
"""

import secrets
from typing import Any
from urllib.parse import quote
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods

from workflows.errors import Refused

from .. import asking, frame, wishes
from ..asking import ACTS, Act, Wish
from ..queries import baskets
from ..queries import workflow as queries
from ..queries.workflow import Look
from ..search import Term, parse
from .door import ACT, PAYLOAD, SEE, is_htmx, needs, tell

MOST = 100  # selected by hand; more is a matter for a batch
TYPED = 25  # from more than this on, the number has to be typed
SHOWN = 25  # plans shown one by one
BASKET = 80  # characters of the name of one


@require_http_methods(["GET", "HEAD", "POST"])
@needs(SEE, ACT)
def ask(request: HttpRequest, act: str, pk: UUID | None = None) -> HttpResponse:
    """About one workflow, or about those whose ids are in the address."""
    if act not in ACTS:
        raise Http404(f"There is no act {act!r}; there are {', '.join(ACTS)}.")
    looks = queries.look([pk] if pk else _ids(request))
    if not looks:
        raise Http404(f"There is no workflow {pk or 'among those you named'}; retention may have removed it.")
    if request.method != "POST":
        chosen = Wish(step=wishes.place(request.GET.get("step", "")), path=request.GET.get("path", ""))
        return _draw(request, ACTS[act], looks, chosen)
    try:
        wanted = _wishes(request, ACTS[act], looks)
    except Refused as refusal:
        return _draw(request, ACTS[act], looks, Wish(reason=request.POST.get("reason", "")), str(refusal), 409)
    if "look" in request.POST:
        return _draw(request, ACTS[act], looks, wanted[0])
    return _do(request, ACTS[act], looks, wanted)


def safe_back(back: str, otherwise: str = "") -> str:
    """Nobody is sent elsewhere, not even to another page of the host's."""
    home = reverse("rekindle:overview")
    ours = url_has_allowed_host_and_scheme(back, allowed_hosts=None) and back.startswith(home) and back.isprintable()
    return back if ours else otherwise or reverse("rekindle:workflows")


def basket_of(terms: list[Term]) -> str:
    """The one that was searched for: of a workflow that waits in several, what waits there is meant."""
    named = [term.value for term in terms if term.key == "basket" and not term.negated]
    return named[0][:BASKET] if len(named) == 1 else ""


# -- acting -----------------------------------------------------------------------------------------------------------


def _wishes(request: HttpRequest, act: Act, looks: list[Look]) -> list[Wish]:
    whole = request.user.has_perm(PAYLOAD)
    wanted = [wishes.read(request.POST, look.workflow, whole=whole) for look in looks]
    if "look" in request.POST:
        return wanted
    if asking.needs_reason(act, looks) and not wanted[0].reason:
        raise Refused("Nothing was done: say why, a reason is required.")
    if act.name == "move" and not wanted[0].to:
        raise Refused("Nothing was done: name the basket it shall wait in.")
    if any(wish.fence is None for wish in wanted):
        raise Refused("Nothing was done: the form did not say what you saw. Look at it once more.")
    if len(looks) > TYPED and request.POST.get("number", "").strip() != str(len(looks)):
        raise Refused(f"Nothing was done: type {len(looks)}, the number of workflows, to confirm.")
    return wanted


def _do(request: HttpRequest, act: Act, looks: list[Look], wanted: list[Wish]) -> HttpResponse:
    done, refused = [], []
    for look, wish in zip(looks, wanted, strict=True):
        try:
            done.append(asking.perform(act, look, wish, by=request.user.get_username()))
        except Refused as refusal:
            refused.append(str(refusal))
    if not done:
        fresh = queries.look([look.workflow.pk for look in looks])
        if not fresh:
            raise Http404(refused[0])
        return _draw(request, act, fresh, wanted[0], refused[0], 409)
    sentence = done[0].sentence if len(looks) == 1 else _counted(act, len(done), refused)
    new = next(
        (each.workflow.pk for each in done if each.workflow.pk not in {look.workflow.pk for look in looks}), None
    )
    home = reverse("rekindle:workflow", args=[new or looks[0].workflow.pk]) if len(looks) == 1 else ""
    back = home if new else safe_back(request.POST.get("back", ""), home)
    if is_htmx(request) and not new:
        return tell(HttpResponse(status=204), sentence, bad=bool(refused))
    messages.success(request, sentence)
    if is_htmx(request):
        return HttpResponse(status=204, headers={"HX-Redirect": back})
    return redirect(back)


def _counted(act: Act, done: int, refused: list[str]) -> str:
    said = f"{act.word}: {done} done"
    return f"{said}, {len(refused)} refused. {refused[0]}" if refused else f"{said}."


# -- asking -----------------------------------------------------------------------------------------------------------


def _draw(
    request: HttpRequest, act: Act, looks: list[Look], wish: Wish, refusal: str = "", status: int = 200
) -> HttpResponse:
    first, many = looks[0], len(looks) > 1
    whole = request.user.has_perm(PAYLOAD)
    foreseen = [asking.foresee(act, look, wish) for look in looks]
    shown = asking.alike(foreseen)[:SHOWN]
    word = act.word if many else asking.word_for(act, first.workflow)
    subject = f"{len(looks)} workflows" if many else str(first.workflow)
    here = reverse("rekindle:ask_many", args=[act.name]) if many else _address(act.name, first)
    context: dict[str, Any] = {
        "act": act,
        "word": word,
        "subject": subject,
        "many": many,
        "looks": looks,
        "look": first,
        "foreseen": shown if many else foreseen,
        "more": len(foreseen) - sum(each.count for each in shown) if many else 0,
        "summary": asking.summary(act, foreseen) if many else "",
        "may_go": any(not each.refusal for each in foreseen),
        "wish": wish,
        "needs_reason": asking.needs_reason(act, looks),
        "typed": len(looks) if len(looks) > TYPED else 0,
        "ids": ".".join(str(look.workflow.pk) for look in looks) if many else "",
        "kept": [("basket", _wait(request))] if many and act.name in ("resume", "move") else [],
        "modes": [] if many else _modes(first, act),
        "trouble": refusal,
        "action": here,
        "places": baskets.places() if act.name == "move" else [],
        "token": secrets.token_hex(16),
        "back": safe_back(_given(request, "back"), reverse("rekindle:workflow", args=[first.workflow.pk])),
    } | ({} if many else _fields(request, act, first, wish, whole))
    if is_htmx(request):
        return render(request, "rekindle/ask.html#dialog", context, status=status)
    name = first.workflow.name
    listed = f"{reverse('rekindle:workflows')}?q={quote(name)}"
    around = frame.around(
        request, "workflows", f"{word} {subject}", crumbs=[("Workflows", reverse("rekindle:workflows")), (name, listed)]
    )
    return render(request, "rekindle/ask.html", around | context, status=status)


def _fields(request: HttpRequest, act: Act, look: Look, wish: Wish, whole: bool) -> dict[str, Any]:
    steps = asking.choosable(look) if act.name == "rerun" else []
    typed = {key: str(value) for key, value in request.POST.items() if key.startswith(wishes.BEGINS)}
    return {
        "variables": wishes.variables(look.workflow, whole=whole, typed=typed),
        "changes": wishes.changes(look.workflow, wish.variables, whole=whole),
        "may_change": act.name in ("recover", "rerun", "reopen", "resume"),
        "unfolded": bool(typed) and "look" in request.POST,
        "steps": [(f"{step.path}:{step.position}", step, (step.path, step.position) == wish.step) for step in steps],
        "tickets": asking.tickets(look.workflow) if act.name == "reopen" else [],
        "pends": asking.pends(look) if act.name in ("resume", "move") else [],
        "runs_again": any(step.kind == "step" for step in asking.pends(look)),
    }


def _modes(look: Look, act: Act) -> list[tuple[str, str, bool]]:
    """Other ways to bring the same workflow back."""
    if act.name not in ("recover", "rerun", "reopen"):
        return []
    workflow = look.workflow
    names = {"recover": "From its last finished step", "rerun": "From a chosen step", "reopen": "With a ticket"}
    if not workflow.is_finished:
        return []
    if workflow.status == "completed":
        names.pop("recover")
    if not asking.tickets(workflow):
        names.pop("reopen")
    return [(word, _address(name, look), name == act.name) for name, word in names.items()] if len(names) > 1 else []


def _address(act: str, look: Look) -> str:
    return reverse("rekindle:ask", args=[look.workflow.pk, act])


def _wait(request: HttpRequest) -> str:
    """Which wait of several is meant, for workflows that were ticked in a list."""
    return _given(request, "basket") or basket_of(parse(request.GET.get("q", ""))[0])


def _ids(request: HttpRequest) -> list[UUID]:
    try:
        given = request.POST if request.method == "POST" else request.GET
        return wishes.ids(".".join(given.getlist("ids")), MOST)  # a list ticked by hand gives them one by one
    except ValueError:
        raise Http404("`ids` must be ids of workflows, joined by dots.") from None


def _given(request: HttpRequest, name: str) -> str:
    return str((request.POST if request.method == "POST" else request.GET).get(name, ""))

"""The page of one workflow, and its payloads as files."""

import json
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from workflows.conf import settings

from .. import addresses, frame, timeline
from ..buttons import buttons
from ..differences import differences
from ..etag import polled
from ..models import Recovery
from ..outcomes import FOUND, OUTCOMES, plan_in_words
from ..panel import panel
from ..queries import workflow as queries
from ..queries.workflow import Look
from ..redacting import redact, shown
from ..verdict import verdict
from ..wishes import place
from .door import ACT, PAYLOAD, SEE, is_htmx, needs

TABS = {
    "timeline": "Timeline",
    "events": "Events",
    "recovery": "Recovery",
    "data": "Data",
    "paths": "Paths & baskets",
    "audit": "Audit",
}
PAYLOADS = ("input", "variables", "output", "error")


@require_safe
@needs(SEE)
@polled
def workflow(request: HttpRequest, pk: UUID) -> HttpResponse:
    tab = request.GET.get("tab", "timeline")
    if tab not in TABS:
        raise Http404(f"There is no tab {tab!r}; there are {', '.join(TABS)}.")
    if peeks := is_htmx(request) and "peek" in request.GET:
        tab = "recovery"  # nothing of the tabs is shown, and this one is known already
    look = queries.one(pk, chosen=place(request.GET.get("step", "")), payload=tab == "timeline")
    if look is None:
        raise Http404(_gone(pk))
    context = _page(request, look, tab)
    if is_htmx(request):
        return render(request, f"rekindle/workflow.html#{'peek' if peeks else 'live'}", context)
    named = (look.workflow.name, addresses.of_name(look.workflow.name))
    crumbs = [("Workflows", reverse("rekindle:workflows")), named]
    title = look.workflow.key or look.workflow.short_id
    return render(request, "rekindle/workflow.html", frame.around(request, "workflows", title, crumbs=crumbs) | context)


@require_safe
@needs(SEE)
def payload(request: HttpRequest, pk: UUID, what: str) -> HttpResponse:
    """A stored value as a file, redacted for those who may not see all of it."""
    step = place(request.GET.get("step", ""))
    if what not in (("result", "error") if step else PAYLOADS):
        raise Http404(f"There is no payload {what!r}.")
    try:
        value = queries.payload(pk, what, step)
    except LookupError as gone:
        raise Http404(gone.args[0]) from None
    text = json.dumps(value if request.user.has_perm(PAYLOAD) else redact(value), ensure_ascii=False, indent=2)
    file = f'attachment; filename="{pk}-{what}.json"'
    return HttpResponse(text, content_type="application/json", headers={"Content-Disposition": file})


# -- parts ------------------------------------------------------------------------------------------------------------


def _page(request: HttpRequest, look: Look, tab: str) -> dict[str, Any]:
    said = verdict(look.seen)
    may_act, whole = request.user.has_perm(ACT), request.user.has_perm(PAYLOAD)
    here = _here(request, look)
    counts = {"events": look.workflow.seq, "recovery": len(look.rescues), "audit": look.acts}
    log_url = settings().log_url
    return {
        "look": look,
        "workflow": look.workflow,
        "verdict": said,
        "buttons": buttons(look.seen, said, may_act=may_act),
        "may_act": may_act,
        "tab": tab,
        "tabs": [(name, word, counts.get(name) or "") for name, word in TABS.items()],
        "here": here,
        "commands": _commands(look),
        "whole": whole,
        "logs": log_url.replace("{workflow_id}", str(look.workflow.pk)) if log_url.startswith("http") else "",
    } | SHOWN[tab](request, look, whole)


def _timeline(request: HttpRequest, look: Look, whole: bool) -> dict[str, Any]:
    fold, every = request.GET.get("waits") != "full", request.GET.get("rows") == "all"
    events = queries.diary(look.workflow)
    workers = {event.worker: event.worker_name for event in events if event.worker and event.worker_name}
    ended = look.workflow.finished_at or look.seen.now
    history = timeline.read(look.steps, events, workers, look.rescues, began=look.workflow.created_at, ended=ended)
    drawing = timeline.draw(history, chosen=look.chosen_key, fold=fold, most=None if every else timeline.MOST)
    line = next((line for line in history.lines if line.key == look.chosen_key), None)
    return {
        "drawing": drawing,
        "fold": fold,
        "every": every,
        "tabled": request.GET.get("table") == "yes",
        "cut": len(events) == queries.DRAWN,
        "panel": line and panel(look.workflow, line, look.chosen, look.seen.now, whole=whole),
        "input": shown(look.workflow.input, whole=whole),
    }


def _events(request: HttpRequest, look: Look, whole: bool) -> dict[str, Any]:
    before = request.GET.get("before", "")
    if before and not before.isdecimal():
        raise Http404("`before` must be the number of an event.")
    events, older = queries.page_of_diary(look.workflow.pk, int(before[:9]) if before else None)
    for event in events:
        event.said = _compact(event.data, whole)
    return {"events": events, "older": older, "before": before}


def _recovery(request: HttpRequest, look: Look, whole: bool) -> dict[str, Any]:
    return {"rescues": [_told(each) for each in look.rescues]}


def _told(rescue: Recovery) -> tuple[Recovery, str, str, str, str]:
    """With its state, its outcome, what was found and its plan, in the words of the page of all recoveries."""
    state, word = OUTCOMES.get(rescue.outcome, ("failed", rescue.outcome))
    return rescue, state, word, FOUND.get(rescue.finding, rescue.finding), plan_in_words(rescue.plan or {})


def _data(request: HttpRequest, look: Look, whole: bool) -> dict[str, Any]:
    values = {name: getattr(look.workflow, name) for name in PAYLOADS}
    return {"payloads": [(name, shown(value, whole=whole)) for name, value in values.items() if value is not None]}


def _paths(request: HttpRequest, look: Look, whole: bool) -> dict[str, Any]:
    paths: dict[str, list[Any]] = {}
    for step in look.steps:
        paths.setdefault(step.path, []).append(step)
    return {
        "paths": [
            (path, steps[-1], sum(step.status == "done" for step in steps), len(steps)) for path, steps in paths.items()
        ],
        "waits": look.seen.waits,
        "may_resume": request.user.has_perm(ACT),
    }


def _audit(request: HttpRequest, look: Look, whole: bool) -> dict[str, Any]:
    entries = queries.audit(look.workflow.pk)
    for entry in entries:
        entry.said = differences(entry.before, entry.after, whole=whole)  # type: ignore[attr-defined]
    return {"entries": entries}


SHOWN = {
    "timeline": _timeline,
    "events": _events,
    "recovery": _recovery,
    "data": _data,
    "paths": _paths,
    "audit": _audit,
}


def _compact(data: Any, whole: bool) -> str:
    pairs = (data if whole else redact(data)) or {}
    if not isinstance(pairs, dict):
        return str(pairs)
    return ", ".join(f"{key} {_short(value)}" for key, value in pairs.items() if value not in (None, "", [], {}))


def _short(value: Any) -> str:
    text = "–" if value in (None, "") else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _here(request: HttpRequest, look: Look) -> str:
    kept = {
        name: request.GET[name] for name in ("tab", "step", "waits", "rows", "table", "before") if request.GET.get(name)
    }
    address = reverse("rekindle:workflow", args=[look.workflow.pk])
    return f"{address}?{urlencode(kept, quote_via=quote)}" if kept else address


def _commands(look: Look) -> list[tuple[str, str]]:
    pk, run = look.workflow.pk, "manage.py"
    found = [("Everything that is known", f"{run} show {pk} --json"), ("What recovery would do", f"{run} plan {pk}")]
    if look.workflow.is_finished:
        if look.workflow.status != "completed":
            found.append(("Go on where it stopped", f'{run} revive {pk} --reason "…"'))
        found.append(("Run it again, from a step on", f'{run} rerun {pk} --from STEP --reason "…"'))
        return found
    if look.workflow.status == "running":
        found.append(("Take it over from a dead worker", f'{run} recover {pk} --reason "…"'))
    if look.workflow.pause_reason in ("suspended", "pend"):
        found.append(("Let it go on", f"{run} resume {pk}"))
        if look.workflow.basket:
            found.append(("Have it wait elsewhere", f'{run} move {pk} --to BASKET --reason "…"'))
    else:
        found.append(("Stop before its next step", f"{run} pause {pk}"))
    found.append(("Cancel it before its next step", f'{run} cancel {pk} --reason "…"'))
    found.append(("End it", f'{run} fail {pk} --reason "…"'))
    return found


def _gone(pk: UUID) -> str:
    days = settings().keep_finished / 86400
    if queries.was_there(pk):
        return f"There was a workflow {pk}; retention has removed it, {days:g} days after it had ended. What was recovered, and who acted, is kept longer."
    return f"There is no workflow {pk}. If there was one, retention may have removed it: finished ones are kept {days:g} days."

"""Batches: the recent ones, and one with its progress, the result of each item, and the button that stops it."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from workflows.errors import NotFound, Refused

from .. import batches as verbs
from .. import frame, spreadsheet
from ..asking import ACTS
from ..batches.progress import progress
from ..etag import polled
from ..models import Batch
from ..queries import batches as queries
from .door import ACT, SEE, is_htmx, needs

# The word in the address, what is stored, icon and word.
RESULTS = {
    "all": (None, "", "All"),
    "done": ("done", "completed", "Done"),
    "skipped": ("skipped", "cancelled", "Skipped"),
    "failed": ("failed", "failed", "Failed"),
    "left": ("", "queued", "Waiting"),
}
BAR = 1000  # parts of the drawn line


@require_safe
@needs(SEE)
@polled
def batches(request: HttpRequest) -> HttpResponse:
    before = request.GET.get("before", "")
    if before and not (before.isdecimal() and len(before) < 19):
        raise Http404("`before` must be the number of a batch.")
    page = queries.page(int(before) if before else None)
    here = reverse("rekindle:batches")
    context = {
        "rows": [(batch, _word(batch), progress(batch, batch.now)) for batch in page.batches],
        "before": before,
        "here": f"{here}?before={before}" if before else here,
        "newest": here,
        "older": f"{here}?before={page.older}" if page.older else "",
    }
    if is_htmx(request):
        return render(request, "rekindle/batches.html#rows", context)
    around = frame.around(request, "workflows", "Batches", crumbs=[("Workflows", reverse("rekindle:workflows"))])
    return render(request, "rekindle/batches.html", around | context)


@require_safe
@needs(SEE)
@polled
def batch(request: HttpRequest, pk: int) -> HttpResponse:
    one = _found(pk)
    context = _told(request, one)
    if is_htmx(request):
        return render(request, "rekindle/batch.html#batch", context)
    crumbs = [("Workflows", reverse("rekindle:workflows")), ("Batches", reverse("rekindle:batches"))]
    around = frame.around(request, "workflows", f"{_word(one)} {_many(one)}", crumbs=crumbs)
    return render(request, "rekindle/batch.html", around | context)


@require_safe
@needs(SEE)
def batch_csv(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The results, all pages of them."""
    one = _found(pk)
    lines = queries.export(one.pk, RESULTS[_result(request)][0])
    return spreadsheet.answer(f"rekindle-batch-{one.pk}", queries.EXPORT, lines)


@require_POST
@needs(SEE, ACT)
def stop_batch(request: HttpRequest, pk: int) -> HttpResponse:
    try:
        stopped = verbs.stop(pk, by=request.user.get_username(), via="page")
    except NotFound as gone:
        raise Http404(str(gone)) from None
    except Refused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, f"Stopped: {stopped.left:,} of {stopped.total:,} were not reached.")
    return redirect("rekindle:batch", pk)


def _told(request: HttpRequest, one: Any) -> dict[str, Any]:
    result, after = _result(request), _after(request)
    page = queries.items(one.pk, RESULTS[result][0], after)
    here, place = reverse("rekindle:batch", args=[one.pk]), {"after": str(after)} if after else {}
    return {
        "batch": one,
        "progress": progress(one, one.now),
        "bar": _bar(one),
        "results": [(key, _count(one, key), _url(here, key), key == result) for key in RESULTS],
        "result": result,
        "rows": [(item, *_marked(one, item.result)) for item in page.items],
        "after": after,
        "here": _url(here, result, **place),
        "first": _url(here, result),
        "next": _url(here, result, after=str(page.after)) if page.after else "",
        "csv": _url(reverse("rekindle:batch_csv", args=[one.pk]), result),
        "listed": f"{reverse('rekindle:workflows')}?{one.query}" if one.query else "",
        "audited": f"{reverse('rekindle:audit')}?{urlencode({'subject': str(one)})}",
        "may_act": request.user.has_perm(ACT),
    }


def _found(pk: int) -> Any:
    one = queries.one(pk) if pk < 1 << 63 else None
    if one is None:
        raise Http404(f"There is no batch {pk}; retention may have removed it.")
    return one


def _word(one: Batch) -> str:
    return ACTS[one.act].word


def _many(one: Batch) -> str:
    return f"{one.total:,} workflow{'' if one.total == 1 else 's'}"


def _bar(one: Batch) -> list[tuple[str, int, int]]:
    """Class, beginning and length of each part."""
    parts, start = [], 0
    for name in ("done", "skipped", "failed"):
        length = BAR * getattr(one, name) // max(1, one.total)
        parts.append((name, start, length))
        start += length
    return parts


def _count(one: Batch, key: str) -> tuple[str, str, int]:
    """Icon, word and number of one kind of result."""
    _, icon, word = RESULTS[key]
    number = one.total if key == "all" else getattr(one, key)
    return icon, _left_word(one) if key == "left" else word, number


def _marked(one: Batch, stored: str) -> tuple[str, str]:
    icon, word = next((icon, word) for value, icon, word in RESULTS.values() if value == stored)
    return icon, word if stored else _left_word(one)


def _left_word(one: Batch) -> str:
    return "Waiting" if one.is_open else "Not reached"


def _result(request: HttpRequest) -> str:
    result = request.GET.get("result") or "all"
    if result not in RESULTS:
        raise Http404(f"There is no result {result!r}; there are {', '.join(RESULTS)}.")
    return result


def _after(request: HttpRequest) -> UUID | None:
    try:
        return UUID(request.GET["after"]) if request.GET.get("after") else None
    except ValueError:
        raise Http404("`after` must be the id of a workflow.") from None


def _url(page: str, result: str, **place: str) -> str:
    query = ({"result": result} if result != "all" else {}) | place
    return f"{page}?{urlencode(query)}" if query else page

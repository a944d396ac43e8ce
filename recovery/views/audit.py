"""Who did what, when and why, and what it changed. Nobody changes it here."""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from .. import frame
from ..differences import differences
from ..etag import polled
from ..models import AuditEntry
from ..queries import audit as queries
from ..redacting import redact
from ..spreadsheet import answer
from ..tuning import EVERYBODY
from .door import PAYLOAD, SEE, is_htmx, needs

WHOLE_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
COLUMNS = (
    "at",
    "actor",
    "via",
    "act",
    "subject",
    "subject_id",
    "subject_name",
    "reason",
    "refused",
    "before",
    "after",
)


@require_safe
@needs(SEE)
@polled
def audit(request: HttpRequest) -> HttpResponse:
    context = _listed(request)
    if is_htmx(request):
        return render(request, "rekindle/audit.html#rows", context)
    return render(request, "rekindle/audit.html", frame.around(request, "audit", "Audit") | context)


@require_safe
@needs(SEE)
def audit_csv(request: HttpRequest) -> HttpResponseBase:
    """Everything that matches, streamed."""
    return answer("audit", COLUMNS, _lines(_asked(request), whole=request.user.has_perm(PAYLOAD)))


def _listed(request: HttpRequest) -> dict[str, Any]:
    asked, before = _asked(request), request.GET.get("before", "")
    if before and not (before.isdecimal() and len(before) < 19):
        raise Http404("`before` must be the number of an entry.")
    page = queries.page(asked, int(before) if before else None)
    whole = request.user.has_perm(PAYLOAD)
    kept = {name: getattr(asked, name) for name in ("actor", "act", "subject") if getattr(asked, name)}
    for entry in page.entries:
        entry.page = _page(entry)  # type: ignore[attr-defined]
    return {
        "rows": [(entry, differences(entry.before, entry.after, whole=whole)) for entry in page.entries],
        "asked": asked,
        "before": before,
        "whole": whole,
        "chips": [(f"{name}: {kept[name]}", _url("audit", _without(kept, name))) for name in kept],
        "newest": _url("audit", kept),
        "here": _url("audit", kept | ({"before": before} if before else {})),
        "older": _url("audit", kept | {"before": str(page.older)}) if page.older else "",
        "csv": _url("audit_csv", kept),
    }


def _page(entry: AuditEntry) -> str:
    """Where what was acted upon is shown, if it has a page of its own."""
    if entry.subject == "workflow" and WHOLE_ID.fullmatch(entry.subject_id):
        return reverse("rekindle:workflow", args=[entry.subject_id])
    if entry.subject == "policy" and entry.subject_name not in ("", EVERYBODY):
        return reverse("rekindle:name", args=[entry.subject_name])
    return ""


def _without(kept: dict[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in kept.items() if key != name}


def _lines(asked: queries.Filter, *, whole: bool) -> Iterator[list[Any]]:
    for entry in queries.every(asked):
        yield [_cell(entry, name, whole) for name in COLUMNS]


def _cell(entry: AuditEntry, name: str, whole: bool) -> Any:
    value = getattr(entry, name)
    if name not in ("before", "after"):
        return value
    return "" if value is None else json.dumps(value if whole else redact(value), ensure_ascii=False)


def _asked(request: HttpRequest) -> queries.Filter:
    """Without NUL, which no column can hold."""
    actor, act, subject = (
        request.GET.get(name, "").replace("\0", "").strip()[:320] for name in ("actor", "act", "subject")
    )
    return queries.Filter(actor, act, subject)


def _url(page: str, query: dict[str, str]) -> str:
    return reverse(f"rekindle:{page}") + (f"?{urlencode(query)}" if query else "")

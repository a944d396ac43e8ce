"""Keeping a list under a name, renaming, sharing and deleting it: a dialog where scripts run, a page where they do not."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from workflows.errors import NotFound, Refused

from .. import frame, saved
from ..models import SavedView
from .ask import safe_back
from .door import SEE, is_htmx, needs
from .workflows import Asked, asked_by, of_view


@require_http_methods(["GET", "HEAD", "POST"])
@needs(SEE)
def keep_view(request: HttpRequest) -> HttpResponse:
    """The list whose view, search and range are in the address."""
    asked, who = asked_by(request), saved.person(request.user)
    if request.method != "POST":
        return _draw(request, who, asked)
    try:
        kept = saved.keep(who, **_typed(request), view=asked.view, search=asked.search.text, times=asked.times)
    except Refused as refusal:
        return _draw(request, who, asked, refusal=str(refusal))
    return _done(request, of_view(kept).url(), f"{kept.name} is among your views.")


@require_http_methods(["GET", "HEAD", "POST"])
@needs(SEE)
def saved_view(request: HttpRequest, pk: int) -> HttpResponse:
    who = saved.person(request.user)
    try:
        view = saved.one(who, pk)
    except NotFound as gone:
        raise Http404(str(gone)) from None
    except Refused as refusal:
        return _done(request, reverse("rekindle:workflows"), str(refusal))
    if request.method != "POST":
        return _draw(request, who, of_view(view), view)
    if "delete" in request.POST:
        saved.remove(who, pk)
        return _done(request, reverse("rekindle:workflows"), f"{view.name} is deleted.")
    try:
        view = saved.change(who, pk, **_typed(request))
    except Refused as refusal:
        return _draw(request, who, of_view(view), view, str(refusal))
    return _done(request, of_view(view).url(), f"{view.name} is saved.")


def _typed(request: HttpRequest) -> dict[str, Any]:
    return {"name": request.POST.get("name", ""), "shared": request.POST.get("shared") == "on"}


def _done(request: HttpRequest, where: str, sentence: str) -> HttpResponse:
    messages.success(request, sentence)
    return HttpResponse(status=204, headers={"HX-Redirect": where}) if is_htmx(request) else redirect(where)


def _draw(
    request: HttpRequest, who: saved.Person, asked: Asked, view: SavedView | None = None, refusal: str = ""
) -> HttpResponse:
    action = reverse("rekindle:saved_view", args=[view.pk]) if view else asked.url("rekindle:keep_view")
    context = {
        "asked": asked,
        "saved": view,
        "action": action,
        "name": request.POST.get("name", view.name if view else ""),
        "shared": request.POST.get("shared") == "on" if request.method == "POST" else bool(view and view.shared),
        "may_share": who.may_share,
        "others": view is not None and view.owner != who.key,
        "trouble": refusal,
        "back": safe_back(request.GET.get("back", ""), asked.url()),
    }
    status = 409 if refusal else 200
    if is_htmx(request):
        return render(request, "rekindle/saved.html#dialog", context, status=status)
    crumbs = [("Workflows", reverse("rekindle:workflows"))]
    title = f"Change {view.name}" if view else "Save this view"
    around = frame.around(request, "workflows", title, crumbs=crumbs)
    return render(request, "rekindle/saved.html", around | context, status=status)

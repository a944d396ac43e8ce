"""Leaving and removing notes: a dialog where scripts run, a page where they do not."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from workflows.errors import NotFound, Refused

from .. import frame
from .. import notes as left
from .ask import safe_back
from .door import ACT, SEE, is_htmx, needs, tell

PAGES = {"workflow": "workflows", "worker": "recovery"}  # where each kind is at home


@require_http_methods(["GET", "HEAD", "POST"])
@needs(SEE, ACT)
def notes(request: HttpRequest, kind: str, pk: str) -> HttpResponse:
    try:
        about = left.subject(kind, pk)
    except NotFound as gone:
        raise Http404(str(gone)) from None
    if request.method != "POST":
        return _draw(request, about)
    removed, by = request.POST.get("remove", ""), request.user.get_username()
    if removed:
        if removed.isdecimal() and len(removed) < 19:
            left.remove(about, int(removed), by=by)
        return _done(request, about, "The note is removed.")
    try:
        left.leave(about, request.POST.get("text", ""), by=by)
    except Refused as refusal:
        return _draw(request, about, str(refusal))
    return _done(request, about, "The note is left.")


def _done(request: HttpRequest, about: left.Subject, sentence: str) -> HttpResponse:
    if is_htmx(request):
        return tell(HttpResponse(status=204), sentence, bad=False)
    messages.success(request, sentence)
    return redirect(_back(request, about))


def _back(request: HttpRequest, about: left.Subject) -> str:
    home = reverse("rekindle:recovery")
    if about.kind == "workflow":
        home = reverse("rekindle:workflow", args=[about.pk])
    return safe_back((request.POST if request.method == "POST" else request.GET).get("back", ""), home)


def _draw(request: HttpRequest, about: left.Subject, refusal: str = "") -> HttpResponse:
    context = {
        "about": about,
        "what": left.SUBJECTS[about.kind],
        "left": left.on(about)[: left.MOST],
        "longest": left.LONGEST,
        "typed": request.POST.get("text", ""),
        "trouble": refusal,
        "action": reverse("rekindle:notes", args=[about.kind, about.pk]),
        "back": _back(request, about),
    }
    status = 409 if refusal else 200
    if is_htmx(request):
        return render(request, "rekindle/notes.html#dialog", context, status=status)
    around = frame.around(request, PAGES[about.kind], f"Notes on {about}")
    return render(request, "rekindle/notes.html", around | context, status=status)

"""Who works, what the dead left, and what the installation says of itself."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from workflows.commands import doctor

from .. import frame
from ..etag import polled
from ..in_force import in_force
from ..queries.workers import crew
from .door import SEE, is_htmx, needs


@require_safe
@needs(SEE)
@polled
def workers(request: HttpRequest) -> HttpResponse:
    if is_htmx(request):
        return render(request, "rekindle/workers.html#living", {"crew": crew()})
    around = frame.around(request, "workers", "Workers")
    found = {"crew": crew(), "findings": _findings(), "settings": in_force()}
    return render(request, "rekindle/workers.html", around | found)


def _findings() -> list[doctor.Finding]:
    """Only what is cheap: the command also opens connections and reads the migrations."""
    return [*doctor.configuration(), *doctor.server(), *doctor.clocks(), *doctor.crew(), *doctor.schedule()]

"""Who works, what the dead left, and what the installation says of itself."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from workflows.commands import doctor

from .. import frame, killing
from ..etag import polled
from ..in_force import in_force
from ..queries.workers import crew
from .door import ACT, SEE, is_htmx, needs


@require_safe
@needs(SEE)
@polled
def workers(request: HttpRequest) -> HttpResponse:
    seen = {"crew": crew(), "killing": killing.is_offered(), "may_act": request.user.has_perm(ACT)}
    if is_htmx(request):
        return render(request, "rekindle/workers.html#living", seen)
    around = frame.around(request, "workers", "Workers")
    every = in_force()
    told = {
        "findings": _findings(),
        "settings": every,
        "chosen": [one for one in every if one.source != "default"],
        "others": [one for one in every if one.source == "default"],
    }
    return render(request, "rekindle/workers.html", around | seen | told)


def _findings() -> list[doctor.Finding]:
    """Only what is cheap: the command also opens connections and reads the migrations."""
    return [*doctor.configuration(), *doctor.server(), *doctor.clocks(), *doctor.crew(), *doctor.schedule()]

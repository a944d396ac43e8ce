"""Kill this worker: the demo's button. Asks first, and shows what would happen to what the worker holds.

Where nobody may be killed there is no such page.
"""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from workflows.errors import Refused
from workflows.models import Worker

from .. import frame, killing
from ..queries.workers import hands
from .door import ACT, SEE, hurry, is_htmx, needs, tell


@require_http_methods(["GET", "HEAD", "POST"])
@needs(SEE, ACT)
def kill(request: HttpRequest, pk: int) -> HttpResponse:
    if not killing.is_offered():
        raise Http404("Workers can be killed from a page only in the demo.")
    if request.method != "POST":
        return _ask(request, pk)
    try:
        sentence = killing.kill(pk, by=request.user.get_username())
    except Worker.DoesNotExist:
        raise Http404(f"There is no worker {pk}; retention may have removed it.") from None
    except Refused as refusal:
        return _ask(request, pk, str(refusal))
    if is_htmx(request):
        return hurry(tell(HttpResponse(status=204), sentence, bad=False))
    messages.success(request, sentence)
    return redirect(f"{reverse('rekindle:workers')}#k-{pk}")


def _ask(request: HttpRequest, pk: int, refusal: str = "") -> HttpResponse:
    held = hands(pk)
    if held is None:
        raise Http404(f"There is no worker {pk}; retention may have removed it.")
    context = {"held": held, "trouble": refusal}
    status = 409 if refusal else 200
    if is_htmx(request):
        return render(request, "rekindle/kill.html#dialog", context, status=status)
    crumbs = [("Workers", reverse("rekindle:workers"))]
    around = frame.around(request, "workers", f"Kill {held.worker}", crumbs=crumbs)
    return render(request, "rekindle/kill.html", around | context, status=status)

"""Start the demo: the button of a page that has nothing to show yet."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from workflows.errors import Refused

from .. import demo
from .door import ACT, SEE, needs


@require_POST
@needs(SEE, ACT)
def start_demo(request: HttpRequest) -> HttpResponse:
    if not demo.is_offered():
        raise Http404("There is no demo here.")
    try:
        begun = demo.start(by=request.user.get_username())
    except Refused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, f"The demo has begun with {begun} workflows. Any worker takes them up by itself.")
    return redirect("rekindle:overview")

"""The parts of the frame that live: the rail's badges and the status strip."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ..etag import polled
from ..frame import around
from .door import SEE, needs


@require_safe
@needs(SEE)
@polled
def rail(request: HttpRequest) -> HttpResponse:
    return render(request, "rekindle/rail.html", around(request, request.GET.get("here", ""), "") | {"polled": True})

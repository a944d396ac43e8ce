"""The project's URLs, a page with every part of the look, so that the parts of pages to come are looked at too, and two pages
that break."""

from dataclasses import replace
from datetime import timedelta

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import include, path
from django.utils import timezone

from project.urls import handler403, handler404, handler500
from project.urls import urlpatterns as project_urls
from recovery import frame, rail, ranges
from recovery.strips import Strip
from recovery.verdict import Whole, of_whole
from recovery.views.door import SEE, needs

__all__ = ["handler403", "handler404", "handler500", "urlpatterns"]

silent = True  # the database, for whoever asks for away/
WAVE = [3, 4, 4, 6, 5, 8, 9, 9, 7, 8, 6, 5, 4, 6, 3]
TILES = [
    ("running", "Running", "348", "on 6 workers, 48 free slots"),
    ("paused", "Waiting", "12,904", "oldest due 0.2 s ago"),
    ("completed", "Completed", "214,380", "99.7 %"),
    ("failed", "Failed", "611", "38 more than yesterday"),
    ("orphan", "Recovered", "124", "99.2 %, median 1.1 s"),
    ("late", "Late", "0", "worst today 0.4 s"),
]


def gallery(request: HttpRequest) -> HttpResponse:
    around = frame.around(
        request, "recovery", "ORD-48121", crumbs=[("Workflows", "#"), ("order", "#")], range=ranges.asked({})
    )
    pages = [
        rail.Entry(page, "#", page.name == "overview", {"recovery": "3", "alerts": "1"}.get(page.name, ""))
        for page in rail.PAGES
    ]
    now = timezone.now()
    down = of_whole(Whole(now, live_workers=2, scheduler_ran=now - timedelta(minutes=6), mode="enforce"))
    strip = Strip(down[0], page="workers")
    around["frame"] = replace(around["frame"], rail=pages, strips=[strip], live=False)
    return render(request, "gallery/gallery.html", around | {"tiles": TILES, "wave": WAVE, "now": timezone.now()})


def broken(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("the fault is ours")


@needs(SEE)
def away(request: HttpRequest) -> HttpResponse:
    if silent:
        raise OperationalError("the database does not answer")
    return HttpResponse("<main>It answers.</main>")


urlpatterns = [
    path("gallery/", gallery),
    path("broken/", broken),
    path("away/", away),
    path("", include(project_urls)),
]

"""Every address of the dashboard that means something in the world as it is: from the URL patterns, then from link to link.

A new page is found here by itself, as soon as its pattern names things that exist.
"""

import re
from collections import Counter
from collections.abc import Iterator
from html import unescape
from itertools import islice, product
from typing import Any

from django.apps import apps
from django.test import Client
from django.urls import NoReverseMatch, reverse
from django.urls.converters import IntConverter, UUIDConverter
from django.urls.resolvers import URLPattern

from recovery import asking, charts
from recovery.urls import urlpatterns
from recovery.views.workflow import PAYLOADS
from workflows.models import Workflow

HTMX = {"HX-Request": "true"}
LINK = re.compile(r'\b(?:href|data-live|data-poll|data-chart|hx-get)="([^"]*)')
FACES = ("tab", "view", "rows", "waits", "table")  # keys whose value makes it another page
SOME, MOST = 2, 16  # addresses of one pattern; of the page that has most faces
TRIED = 300
THING = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+")


def models() -> list[Any]:
    return [model for label in ("rekindle", "rekindle_recovery") for model in apps.get_app_config(label).get_models()]


def addresses(client: Client) -> dict[str, list[str]]:
    """By the name of the pattern: those that are not a 404 for this client. A pattern without any would be a page that
    nobody walks to and nobody misses, so it is an error."""
    found: dict[str, list[str]] = {}
    for pattern in urlpatterns:
        open = (url for url in islice(_guesses(pattern), TRIED) if client.get(url).status_code != 404)
        found[pattern.name] = list(islice(open, MOST if pattern.name == "workflow" else SOME))
        assert found[pattern.name], (
            f"No address of {pattern.name} ({pattern.pattern}) means anything in this world: "
            "teach walking._values what its arguments are, and hostile.build to make one."
        )
    return found


def walk(client: Client) -> Iterator[tuple[str, Any]]:
    """Whatever can be looked at, and whatever that links to, with its answer. Of those that differ only in what they are
    about, some."""
    waiting = [url for urls in addresses(client).values() for url in urls]
    seen: set[str] = set()
    alike: Counter[str] = Counter()
    while waiting:
        url = waiting.pop(0)
        if url in seen or alike[_shape(url)] >= (SOME if "?" in url else MOST):
            continue
        seen.add(url)
        alike[_shape(url)] += 1
        answer = client.get(url)
        yield url, answer
        if answer.status_code == 200 and answer["Content-Type"].startswith("text/html"):
            waiting += [link for link in _links(url, answer.content.decode()) if link not in seen]


def _shape(url: str) -> str:
    """The address without what it is about: which page, which keys, which tab or view."""
    path, _, query = url.partition("?")
    pairs = [pair.partition("=") for pair in query.split("&")]
    return THING.sub("_", path) + "&".join(f"{key}={value if key in FACES else ''}" for key, _, value in sorted(pairs))


def _links(page: str, text: str) -> list[str]:
    """Those that stay in the dashboard."""
    found = []
    for link in (unescape(each).partition("#")[0] for each in LINK.findall(text)):
        whole = page.partition("?")[0] + link if link.startswith("?") else link
        if whole.startswith("/") and not whole.startswith(("/static/", "/admin/", "/login/", "/logout/")):
            found.append(whole)
    return found


def _guesses(pattern: URLPattern) -> Iterator[str]:
    wanted = dict.fromkeys(pattern.pattern.regex.groupindex) | pattern.pattern.converters
    ids = ".".join(str(pk) for pk in Workflow.objects.values_list("pk", flat=True)[:3])
    for values in product(*(_values(key, converter) for key, converter in wanted.items())):
        try:
            url = reverse(f"rekindle:{pattern.name}", kwargs=dict(zip(wanted, values, strict=True)))
        except NoReverseMatch:  # a name with a slash is no slug
            continue
        yield f"{url}?ids={ids}" if "ask" in pattern.name else url


def _values(key: str, converter: Any) -> list[Any]:
    keys = [pk for model in models() for pk in model._default_manager.order_by("-pk").values_list("pk", flat=True)[:20]]
    if isinstance(converter, UUIDConverter):
        return [pk for pk in keys if not isinstance(pk, int)]
    if isinstance(converter, IntConverter):
        return [pk for pk in dict.fromkeys(keys) if isinstance(pk, int)]
    names = list(Workflow.objects.order_by().values_list("name", flat=True).distinct())
    if key == "kind":
        return ["workflow", "worker"]
    if key == "pk":
        return keys
    if key == "form":
        return ["json", "csv", "html"]
    return [*asking.ACTS, *PAYLOADS, "result", *charts.CHARTS, *names]

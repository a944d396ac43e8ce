"""Who may come in, and what every answer carries: a strict policy, a sentence for those who are refused.

What is said here holds for our views alone. The pages of the project we live in are never touched.
"""

import json
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar, cast

from django.contrib.auth.views import redirect_to_login
from django.db import InterfaceError, OperationalError, transaction
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache

from workflows.conf import settings

from ..bounds import limited
from . import errors

SEE = "rekindle.view_workflow"
ACT = "rekindle.act_on_workflow"
PAYLOAD = "rekindle.see_payload"
CONFIGURE = "rekindle.configure"

CSP = "; ".join(
    [
        "default-src 'self'",
        "img-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)

LONGEST = 10.0  # seconds that one query of a page may take

Answer = TypeVar("Answer", bound=HttpResponseBase)
View = Callable[..., HttpResponseBase]


def needs(*permissions: str) -> Callable[[View], View]:
    """Login, permissions and the content security policy. Whatever goes wrong is said on a page of ours."""

    def wrap(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            response: HttpResponseBase
            try:
                response = _refusal(request, permissions) or _opened(request, view, *args, **kwargs)
            except Http404 as gone:
                response = errors.not_found(request, gone)
            except (OperationalError, InterfaceError):
                response = errors.database_away(request)
            return strict(response)

        return own_transactions(never_cache(guarded))

    return wrap


def own_transactions(view: View) -> View:
    """Where the host has ATOMIC_REQUESTS a refused act would take its audit entry with it, and a silent database the page."""
    return transaction.non_atomic_requests(using=settings().database)(view)


def strict(response: Answer) -> Answer:
    response["Content-Security-Policy"] = CSP
    response["Referrer-Policy"] = "same-origin"
    return response


def tell(response: HttpResponse, sentence: str, *, bad: bool) -> HttpResponse:
    """Have the page say a sentence; see toasts.js."""
    response["HX-Trigger"] = json.dumps({"toast": {"text": sentence, "bad": bad}})
    return response


def hurry(response: HttpResponse) -> HttpResponse:
    """Have the page follow closely for a while, because something is about to happen; see live.js."""
    response["HX-Trigger"] = json.dumps(json.loads(response.get("HX-Trigger", "{}")) | {"hurry": True})
    return response


def is_htmx(request: HttpRequest) -> bool:
    return bool(getattr(request, "htmx", False))


def _opened(request: HttpRequest, view: View, *args: Any, **kwargs: Any) -> HttpResponseBase:
    """Nobody waits long for the database, and the host's own views notice nothing of it."""
    with limited(settings().database, LONGEST):
        response = view(request, *args, **kwargs)
    if isinstance(response, StreamingHttpResponse) and not response.is_async:
        response.streaming_content = _streamed(cast(Iterator[bytes], response.streaming_content))
    return response


def _streamed(lines: Iterator[bytes]) -> Iterator[bytes]:
    with limited(settings().database, LONGEST):
        yield from lines


def _refusal(request: HttpRequest, permissions: tuple[str, ...]) -> HttpResponse | None:
    if not request.user.is_authenticated:
        # No login form inside a row: the page keeps what it shows and says that the session is over.
        return HttpResponse(status=401) if is_htmx(request) else redirect_to_login(request.get_full_path())
    missing = [permission for permission in permissions if not request.user.has_perm(permission)]
    if not missing:
        return None
    sentence = f"You may not do this: the permission {missing[0]} is missing."
    return tell(errors.not_allowed(request, sentence), sentence, bad=True)

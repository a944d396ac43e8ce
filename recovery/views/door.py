"""Who may come in, and what every answer carries: a strict policy, a sentence for those who are refused."""

import json
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from django.contrib.auth.views import redirect_to_login
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache

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

Answer = TypeVar("Answer", bound=HttpResponseBase)
View = Callable[..., HttpResponseBase]


def needs(*permissions: str) -> Callable[[View], View]:
    """Login, permissions and the content security policy. Whatever goes wrong is said on a page of ours."""

    def wrap(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            response: HttpResponseBase
            try:
                response = _refusal(request, permissions) or view(request, *args, **kwargs)
            except Http404 as gone:
                response = errors.not_found(request, gone)
            except (OperationalError, InterfaceError):
                response = errors.database_away(request)
            return strict(response)

        return never_cache(guarded)

    return wrap


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


def _refusal(request: HttpRequest, permissions: tuple[str, ...]) -> HttpResponse | None:
    if not request.user.is_authenticated:
        # No login form inside a row: the page keeps what it shows and says that the session is over.
        return HttpResponse(status=401) if is_htmx(request) else redirect_to_login(request.get_full_path())
    missing = [permission for permission in permissions if not request.user.has_perm(permission)]
    if not missing:
        return None
    sentence = f"You may not do this: the permission {missing[0]} is missing."
    return tell(errors.not_allowed(request, sentence), sentence, bad=True)

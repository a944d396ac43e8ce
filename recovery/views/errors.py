"""When something is wrong: a polite page in the frame. None of them needs the database to answer."""

from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, InterfaceError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import requires_csrf_token

from .. import frame

RETRY = 5  # seconds after which the page of a silent database asks again


def not_found(request: HttpRequest, gone: Exception | None = None) -> HttpResponse:
    # Django's own resolver puts a table of URLs into its exception; only our sentences are for people.
    said = str(gone) if isinstance(gone, Http404) and gone.args and isinstance(gone.args[0], str) else ""
    return _page(request, 404, "Not found", sentence=said or "There is nothing at this address.")


def not_allowed(request: HttpRequest, sentence: str, heading: str = "This needs another role") -> HttpResponse:
    return _page(request, 403, "Not allowed", sentence=sentence, heading=heading)


def database_away(request: HttpRequest) -> HttpResponse:
    response = _page(request, 503, "No database", retry=RETRY)
    response["Retry-After"] = str(RETRY)
    return response


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler404 of the project."""
    return _outside(not_found(request, exception))


def permission_denied(request: HttpRequest, exception: PermissionDenied) -> HttpResponse:
    """handler403 of the project."""
    return _outside(not_allowed(request, str(exception) or "You may not do this."))


@requires_csrf_token
def server_error(request: HttpRequest) -> HttpResponse:
    """handler500 of the project."""
    return _outside(_page(request, 500, "Something broke"))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """CSRF_FAILURE_VIEW of the project."""
    said = "It was drawn for another session, or cookies are switched off. Go back, reload the page, and try again."
    return _outside(not_allowed(request, said, "Nothing was changed: the form is out of date"))


def _page(request: HttpRequest, status: int, title: str, **context: object) -> HttpResponse:
    try:
        around = frame.bare(title, request if status < 500 else None)
    except (DatabaseError, InterfaceError):  # who it is cannot be known now
        around = frame.bare(title)
    return render(request, f"rekindle/errors/{status}.html", around | context, status=status)


def _outside(response: HttpResponse) -> HttpResponse:
    from .door import strict  # the door needs this module first

    return strict(response)

"""What a step may answer instead of a plain result: stop here until somebody or something comes (seed 3)."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Response:
    """Returned by a step's body. A ticket makes the workflow jump, also together with a pend."""

    type: str
    basket: str = ""
    result: Any = None
    ticket: str = ""


def proceed(result: Any = None, *, ticket: str = "") -> Response:
    """Go on; the same as returning the result."""
    return Response("ok_proceed", "", result, ticket)


def pend(basket: str, result: Any = None, *, ticket: str = "") -> Response:
    """This step is done; wait in the basket, then go on with the next."""
    return Response("ok_pend", basket, result, ticket)


def pend_again(basket: str) -> Response:
    """Wait in the basket, then run this step again."""
    return Response("ok_pend_eor", basket)


def error_pend(basket: str = "workflow_error", error: str = "") -> Response:
    """Something is wrong; wait in the basket, then run this step again. A retry basket resumes by itself."""
    return Response("error_pend", basket, error)

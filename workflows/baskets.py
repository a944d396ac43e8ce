"""Baskets: named places where a path waits for someone. Their kind says who will come."""

from .conf import settings
from .errors import BadValue
from .values import text

RESERVED = {
    "workflow_temp_hold": "hold",
    "workflow_pause": "pause",
    "workflow_error": "error",
    "crash_review": "hold",
    "retry_queue": "retry",
}
KINDS = ("human", "retry", "hold", "pause", "error")


def kind_of(basket: str) -> str:
    """human (a person resumes it), retry (resumed automatically, with backoff), hold, pause or error."""
    return (settings().baskets or {}).get(basket) or RESERVED.get(basket, "human")


def check_basket(name: str) -> str:
    if not name:
        raise BadValue("A basket needs a name: nobody could find what waits in it.")
    return text(name, "The basket's name", 80)

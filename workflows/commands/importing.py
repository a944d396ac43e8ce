"""Importing the host's workflows, whose modules may fail in any way."""

from ..definitions import Definition, discover
from ..errors import Refused
from .table import clean


def definitions() -> dict[str, Definition]:
    try:
        return discover()
    except Exception as error:
        raise Refused(
            f"The workflows cannot be imported: {type(error).__name__}: {clean(error, 300)}; --traceback shows where."
        ) from error

"""What a verb is, what it answers, and what its exit code means."""

from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import BadInput, BadValue, NotFound, Refused, UnknownWorkflow

DONE, REFUSED, BAD_INPUT, NOT_FOUND, NO_DATABASE = range(5)

EXIT_CODES = (
    "Exit codes: 0 done; 1 refused, or something was found; 2 bad usage or bad input; 3 no such workflow; "
    "4 the database cannot be reached or used."
)

Options = Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """The same twice: a value for programs, a text for people. A `finding` is said on stderr and makes the exit code 1."""

    value: Any
    text: str
    finding: str = ""


class Verb(NamedTuple):
    help: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Options], Answer]


def code_of(refusal: Refused) -> int:
    if isinstance(refusal, NotFound):
        return NOT_FOUND
    return BAD_INPUT if isinstance(refusal, (BadInput, BadValue, UnknownWorkflow)) else REFUSED

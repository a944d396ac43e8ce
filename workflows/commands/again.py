"""`reopen` and `rerun`: what has ended runs again, as a new generation. Both print the new row."""

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from ..generations import reopen, rerun_from
from ..models import Workflow
from ..values import text
from .acts import REASON, add_arguments, present
from .answer import Answer, Options, Verb
from .asking import find_id, number, read_object, who
from .importing import definitions


def reopen_arguments(parser: ArgumentParser) -> None:
    add_arguments(parser)
    parser.add_argument("--ticket", required=True, help="whose handler is entered")
    parser.add_argument("--basket", default="", help="wait there first, until a person resumes it")
    parser.add_argument("--variables", default="{}", metavar="JSON", help="variables to set")


def rerun_arguments(parser: ArgumentParser) -> None:
    add_arguments(parser)
    parser.add_argument("--from", dest="step", default="", metavar="STEP", help="the first step to run again; else all")
    parser.add_argument("--path", default=".", help="the step's path, such as .checks.fraud. (the body's own)")
    parser.add_argument("--occurrence", type=number(1, 999_999), default=1, help="which of that name (the first)")
    parser.add_argument("--variables", default="{}", metavar="JSON", help="variables to set")


def run(verb: Callable[..., Workflow], *names: str) -> Callable[[Options], Answer]:
    def act(options: Options) -> Answer:
        given: dict[str, Any] = {name: options[name] for name in names} | {
            "reason": text(options["reason"], "The reason", REASON),
            "variables": read_object(options["variables"], "The variables"),
        }
        definitions()
        return present(verb(find_id(options["id"]), by=who(), **given).pk)

    return act


REOPEN = Verb(
    "enter a ticket's handler in a new generation of what has ended", reopen_arguments, run(reopen, "ticket", "basket")
)
RERUN = Verb(
    "run what has ended again, from a step on, as a new generation",
    rerun_arguments,
    run(rerun_from, "step", "path", "occurrence"),
)

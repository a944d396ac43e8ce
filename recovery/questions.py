"""`late` and `stuck` on the command line."""

from argparse import ArgumentParser
from typing import Any

from workflows.commands.answer import Answer, Options, Verb
from workflows.commands.asking import number
from workflows.commands.table import moment, table

from .late import GRACE, LISTED, STUCK_AFTER, late, stuck


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--minutes", type=number(1, 1_000_000), help="later than this many minutes")
    parser.add_argument("--limit", type=number(1, 1000), default=LISTED, help=f"how many ({LISTED}; at most 1000)")


def list_late(options: Options) -> Answer:
    found = late((options["minutes"] or GRACE / 60) * 60, options["limit"])
    lines = [
        (*_name(one), moment(one["due_at"]), moment(one["started_at"]), f"{one['lateness_minutes']:.1f}")
        for one in found
    ]
    headings = ("id", "name", "key", "due", "started", "minutes late")
    return Answer(found, table(headings, lines) if lines else "Nothing was late.")


def list_stuck(options: Options) -> Answer:
    found = stuck((options["minutes"] or STUCK_AFTER / 60) * 60, options["limit"])
    lines = [
        (
            *_name(one),
            moment(one["due_at"]),
            one["pause_reason"] or one["status"],
            one["attempts"],
            one["last_error"],
            f"{one['age_minutes']:.1f}",
        )
        for one in found
    ]
    headings = ("id", "name", "key", "due", "state", "attempts", "last error", "minutes ago")
    return Answer(found, table(headings, lines) if lines else "Nothing is stuck.")


def _name(one: dict[str, Any]) -> tuple[Any, ...]:
    return one["id"], one["name"], one["key"]


VERBS = {
    "late": Verb("list what was completed, but begun late (5 minutes)", add_arguments, list_late),
    "stuck": Verb("list what should have been done by now and is not (1 hour)", add_arguments, list_stuck),
}

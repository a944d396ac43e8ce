"""`start`: accept work and print its id."""

from argparse import ArgumentParser

from ..definitions import LEVELS
from ..starting import start
from ..values import text
from .answer import Answer, Options, Verb
from .asking import read_object, read_time
from .importing import definitions


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", help="the workflow's name")
    parser.add_argument(
        "--input", default="{}", metavar="JSON", help="its arguments by name, or - to read them from stdin"
    )
    parser.add_argument(
        "--key", help="starts at most one: the same key and input print the id of the one that is there"
    )
    parser.add_argument("--at", metavar="TIME", help="not before this time, as 2030-01-31T09:00:00Z")
    parser.add_argument("--priority", choices=LEVELS)


def run(options: Options) -> Answer:
    definitions()
    workflow = start(
        text(options["name"], "The name", 100),
        read_object(options["input"], "The input"),
        key=options["key"],
        at=read_time(options["at"]) if options["at"] is not None else None,
        priority=options["priority"],
    )
    row = {name: getattr(workflow, name) for name in ("id", "name", "key", "status", "due_at")}
    return Answer(row, str(workflow.pk))


START = Verb("start a workflow and print its id", add_arguments, run)

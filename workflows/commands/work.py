"""`work`: run workflows until stopped. No connection is opened here: the supervisor forks."""

from argparse import ArgumentParser

from django.core.checks import ERROR, run_checks

from ..errors import Refused
from .answer import Answer, Options, Verb
from .asking import number
from .importing import definitions


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--processes", type=number(1, 1000), default=1, help="worker processes (1)")
    parser.add_argument(
        "--concurrency", type=number(1, 10_000), default=16, help="workflows that each of them runs at once (16)"
    )


def run(options: Options) -> Answer:
    from ..supervisor import Supervisor

    definitions()
    errors = [message for message in run_checks(tags=["rekindle"]) if message.level >= ERROR]
    if errors:
        raise Refused(" ".join(f"{message.msg} {message.hint or ''}" for message in errors))
    Supervisor(options["processes"], options["concurrency"]).run()
    return Answer({"stopped": True}, "")


WORK = Verb("run workflows until stopped", add_arguments, run)

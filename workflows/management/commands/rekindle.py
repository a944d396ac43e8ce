"""`manage.py rekindle VERB`: finds the verb, prints its answer, and turns every foreseeable trouble into one sentence."""

import os
import sys
from argparse import SUPPRESS
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import InterfaceError, NotSupportedError, OperationalError, ProgrammingError
from django.utils.connection import ConnectionDoesNotExist

from workflows.commands import VERBS
from workflows.commands.answer import BAD_INPUT, EXIT_CODES, NO_DATABASE, REFUSED, code_of
from workflows.commands.table import clean, to_json
from workflows.conf import settings
from workflows.errors import Refused

__all__ = ["VERBS", "Command"]

NOT_USABLE = (OperationalError, InterfaceError, NotSupportedError, ConnectionDoesNotExist, psycopg.OperationalError)
SENTENCE = 600
NOT_THERE = {"42P01", "42703", "42883", "3F000"}  # table, column, function, schema
FORBIDDEN = "42501"


class Command(BaseCommand):
    help = f"Run and steer workflows. {EXIT_CODES}"
    requires_system_checks = []  # a warning about a middleware must not keep anybody from acting at night
    _called_from_command_line: bool  # Django's own

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        for name, verb in VERBS.items():
            words = verbs.add_parser(name, help=verb.help, description=f"{verb.help}.", epilog=EXIT_CODES)
            verb.add_arguments(words)
            words.add_argument("--json", action="store_true", help="print JSON")
            for option in ("--settings", "--pythonpath"):  # Django has read them already
                words.add_argument(option, default=SUPPRESS, help=SUPPRESS)
            words.add_argument("--traceback", action="store_true", default=SUPPRESS, help=SUPPRESS)

    def execute(self, *args: Any, **options: Any) -> Any:
        """On a command line a refusal is one sentence and an exit code; called from code it is a CommandError."""
        if not self._called_from_command_line or options.get("traceback"):
            return super().execute(*args, **options)
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        try:
            return super().execute(*args, **options)
        except CommandError as refusal:
            self.stderr.write(str(refusal))
            sys.exit(refusal.returncode)
        except KeyboardInterrupt:
            sys.exit(130)
        except BrokenPipeError:  # whoever read us has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(REFUSED)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            _read_settings()
            answer = VERBS[options["verb"]].run(options)
        except Refused as refusal:
            raise _error(str(refusal), code_of(refusal)) from refusal
        except NOT_USABLE as trouble:
            raise _error(f"The database cannot be used: {_first_line(trouble)}", NO_DATABASE) from trouble
        except ProgrammingError as trouble:
            raise _error(_what_to_do(trouble), NO_DATABASE) from trouble
        if text := to_json(answer.value) if options["json"] else answer.text:
            self.stdout.write(text)
            self.stdout.flush()
        if answer.finding:
            raise _error(answer.finding, REFUSED)


def _error(sentence: str, code: int) -> CommandError:
    return CommandError(clean(sentence, SENTENCE), returncode=code)


def _read_settings() -> None:
    try:
        settings()
    except (TypeError, ValueError) as error:
        raise _error(f"A REKINDLE setting cannot be read: {error}.", BAD_INPUT) from error


def _what_to_do(trouble: ProgrammingError) -> str:
    """For what an operator can mend; any other is a mistake of ours and is raised as it is."""
    state = getattr(trouble.__cause__, "sqlstate", None)
    if state in NOT_THERE:
        return f"The tables are not those of this version: {_first_line(trouble)}; run manage.py migrate."
    if state == FORBIDDEN:
        return f"The database forbids it: {_first_line(trouble)}; grant the right to this user."
    raise trouble


def _first_line(trouble: Exception) -> str:
    return next(iter(str(trouble).strip().splitlines()), type(trouble).__name__)

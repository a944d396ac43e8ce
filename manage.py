#!/usr/bin/env python
"""Django's manage.py. Two things are ours: `VERB` is short for `rekindle VERB`, and the embedded database is there."""

import os
import sys

import django
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line, get_commands

from project import postgres

NEED_NO_DATABASE = {
    "check",
    "collectstatic",
    "compilemessages",
    "diffsettings",
    "findstatic",
    "help",
    "makemessages",
    "startapp",
    "up",  # starts it itself, and says so
    "version",
}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    try:
        django.setup()
        words = in_full(sys.argv)
        if needs_the_embedded_database(words[1:]):
            postgres.ensure(settings.DATA_DIR)
    except (ImproperlyConfigured, postgres.NoPostgres) as trouble:
        sys.exit(str(trouble))
    execute_from_command_line(words)


def in_full(words: list[str]) -> list[str]:
    """A word that is no command, but a verb of the `rekindle` command, is short for it."""
    if len(words) > 1 and words[1] not in get_commands():
        from workflows.management.commands.rekindle import VERBS

        if words[1] in VERBS:
            return [words[0], "rekindle", *words[1:]]
    return words


def needs_the_embedded_database(words: list[str]) -> bool:
    if not settings.EMBEDDED or not words or words[0].startswith("-") or {"-h", "--help"} & set(words):
        return False
    return words[0] not in NEED_NO_DATABASE


if __name__ == "__main__":
    main()

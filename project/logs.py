"""How log lines look: a sentence with its facts behind it for people, one JSON object a line for machines.

Names, inputs and errors of workflows are other people's text: a line break in them never starts a new line, in a
traceback none that could be mistaken for one of ours, and nothing in them steers a terminal.
"""

import json
import logging
from datetime import UTC, datetime
from typing import Any

USUAL = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def facts(record: logging.LogRecord) -> dict[str, Any]:
    """What the caller passed as `extra`."""
    return {name: value for name, value in vars(record).items() if name not in USUAL}


def stamp(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Sentences(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        behind = "".join(f" {name}={json.dumps(value, default=str)}" for name, value in facts(record).items())
        line = f"{stamp(record)} {record.levelname.lower():7} {record.getMessage()}{behind}"
        if not record.exc_info:
            return _plain(line)
        below = self.formatException(record.exc_info).splitlines()
        return "\n".join([_plain(line), *(f"    {_plain(each)}" for each in below)])


class Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {"time": stamp(record), "level": record.levelname.lower(), "logger": record.name}
        line |= {"message": record.getMessage(), **facts(record)}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _plain(line: str) -> str:
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in line)


def logging_settings(form: str) -> dict[str, Any]:
    """Ours and Django's warnings to standard error; nobody else's loggers are touched."""
    loud = {"handlers": ["stderr"], "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"text": {"()": Sentences}, "json": {"()": Json}},
        "filters": {"context": {"()": "workflows.logs.Context"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": form, "filters": ["context"]}},
        "loggers": {
            "rekindle": loud | {"level": "INFO"},
            "django": loud | {"level": "WARNING"},
            "django-q": loud | {"level": "WARNING"},
        },
    }

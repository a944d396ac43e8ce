"""Log lines carry other people's text and stay one line each."""

import json
import logging
import sys

from project.logs import Json, Sentences

HOSTILE = "order\n2026-01-01T00:00:00Z info    All is well"


def record(message: str, **extra: object) -> logging.LogRecord:
    return logging.makeLogRecord({"name": "rekindle", "levelname": "INFO", "msg": message, "created": 0.5} | extra)


def test_a_line_is_a_sentence_with_its_facts_behind_it():
    line = Sentences().format(record("Took over.", workflow="order", attempt=2))

    assert line == '1970-01-01T00:00:00.500Z info    Took over. workflow="order" attempt=2'


def test_a_line_break_in_a_name_starts_no_new_line():
    assert "\n" not in Sentences().format(record(f"Started {HOSTILE}.", workflow=HOSTILE))
    assert "\n" not in Json().format(record(f"Started {HOSTILE}.", workflow=HOSTILE))


def test_a_traceback_stands_apart_and_nothing_steers_a_terminal():
    """Security: logs. The error's own words may look like a line of ours, or clear the screen."""
    try:
        raise ValueError(f"\x1b[2J{HOSTILE}\u2028{HOSTILE}")
    except ValueError:
        failed = record("A step failed \x1b[31m.", exc_info=sys.exc_info())

    first, *below = Sentences().format(failed).split("\n")

    assert "\\x1b[31m" in first
    assert below
    assert all(line.startswith("    ") and line.isprintable() for line in below)


def test_machines_get_one_object_a_line():
    line = json.loads(Json().format(record("Took over.", workflow="order")))

    assert line == {
        "time": "1970-01-01T00:00:00.500Z",
        "level": "info",
        "logger": "rekindle",
        "message": "Took over.",
        "workflow": "order",
    }

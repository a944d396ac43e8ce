"""Log lines carry other people's text and stay one line each."""

import json
import logging

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


def test_machines_get_one_object_a_line():
    line = json.loads(Json().format(record("Took over.", workflow="order")))

    assert line == {
        "time": "1970-01-01T00:00:00.500Z",
        "level": "info",
        "logger": "rekindle",
        "message": "Took over.",
        "workflow": "order",
    }

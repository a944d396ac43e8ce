"""COPY: lines of text become rows. What a line does not give is what the model says."""

import json
from contextlib import ExitStack
from datetime import datetime
from typing import Any

import psycopg
from django.db.models import NOT_PROVIDED, Field, Model

BLOCK = 1 << 18  # characters sent at once


class Sheet:
    """One table being filled, over a connection of its own: several are filled at the same time."""

    def __init__(self, url: str, model: type[Model], *columns: str) -> None:
        rest = [field for field in model._meta.concrete_fields if _must_be_given(field) and field.column not in columns]
        self._rest = "".join(f"\t{cell(field.get_default())}" for field in rest) + "\n"
        self._lines: list[str] = []
        self._length = 0
        self._open = ExitStack()
        names = ", ".join(f'"{name}"' for name in (*columns, *(field.column for field in rest)))
        connection = self._open.enter_context(psycopg.connect(url))
        cursor = self._open.enter_context(connection.cursor())
        self._copy = self._open.enter_context(cursor.copy(f"COPY {model._meta.db_table} ({names}) FROM STDIN"))

    def add(self, line: str) -> None:
        """Cells with tabs between them."""
        self._lines.append(line)
        self._length += len(line)
        if self._length > BLOCK:
            self._send()

    def row(self, *values: Any) -> None:
        self.add("\t".join(map(cell, values)))

    def close(self) -> None:
        """Commits."""
        self._send()
        self._open.close()

    def _send(self) -> None:
        if self._lines:
            self._copy.write(self._rest.join(self._lines) + self._rest)
            self._lines, self._length = [], 0


def cell(value: Any) -> str:
    if value is None:
        return "\\N"
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, dict | list):
        return json.dumps(value)
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _must_be_given(field: "Field[Any, Any]") -> bool:
    return not field.null and not field.primary_key and field.db_default is NOT_PROVIDED

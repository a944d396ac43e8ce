"""JSON lines: an object a line, for whoever reads it with a program."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import StreamingHttpResponse


def lines(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    for row in rows:
        told = dict(zip(columns, row, strict=True))
        yield f"{json.dumps(told, default=_plain, ensure_ascii=False, separators=(',', ':'))}\n"


def answer(name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> StreamingHttpResponse:
    response = StreamingHttpResponse(lines(columns, rows), content_type="application/x-ndjson; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.jsonl"'
    return response


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no place in JSON")

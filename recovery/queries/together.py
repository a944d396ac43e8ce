"""Several questions in one round trip: a page asks its database little, however much it shows."""

import time
from collections.abc import Mapping
from typing import Any

from django.db import connections

from workflows.conf import settings

Rows = list[dict[str, Any]]
ANSWERING = "EXTRACT(EPOCH FROM clock_timestamp() - statement_timestamp())::float8"


def together(given: Mapping[str, Any], **questions: str) -> dict[str, Rows]:
    """The rows of each question by its name. They come as JSON: a moment is a text until somebody reads it."""
    return timed(given, **questions)[0]


def timed(given: Mapping[str, Any], **questions: str) -> tuple[dict[str, Rows], float]:
    """And the seconds that went by on the way there and back, without those it took to answer."""
    columns = (
        f"(SELECT COALESCE(json_agg(row_to_json(q)), '[]') FROM ({sql}) AS q) AS {name}"  # noqa: S608  (constants)
        for name, sql in questions.items()
    )
    with connections[settings().database].cursor() as cursor:
        began = time.perf_counter()
        cursor.execute(f"SELECT {', '.join(columns)}, {ANSWERING}", given)
        took = time.perf_counter() - began
        *answers, answering = cursor.fetchone()
    return dict(zip(questions, answers, strict=True)), max(took - answering, 0.0)

"""Several questions in one round trip: a page asks its database little, however much it shows."""

from collections.abc import Mapping
from typing import Any

from django.db import connections

from workflows.conf import settings

Rows = list[dict[str, Any]]


def together(given: Mapping[str, Any], **questions: str) -> dict[str, Rows]:
    """The rows of each question by its name. They come as JSON: a moment is a text until somebody reads it."""
    columns = (
        f"(SELECT COALESCE(json_agg(row_to_json(q)), '[]') FROM ({sql}) AS q) AS {name}"  # noqa: S608  (constants)
        for name, sql in questions.items()
    )
    with connections[settings().database].cursor() as cursor:
        cursor.execute("SELECT " + ", ".join(columns), given)
        answers = cursor.fetchone()
    return dict(zip(questions, answers, strict=True))

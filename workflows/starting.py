"""Accepting work: one row, due, with the first line of its diary, in the caller's transaction.

If the caller rolls back, nothing was started. Whoever waits for work is woken after the commit, never before.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections, transaction

from .conf import settings
from .definitions import LEVELS, Definition, find
from .errors import BadInput, KeyTaken
from .ids import uuid7
from .models import Workflow
from .moves import INSERT
from .notify import poke
from .values import encode, moment, text

SLICE = 1000
BORN = ("id", "status", "created_at", "due_at", "wake_at", "max_recovery_attempts", "stale_after", "run_limit")


def start(
    name: str | Definition,
    input: Mapping[str, Any] | None = None,
    *,
    key: str | None = None,
    at: datetime | None = None,
    priority: str | None = None,
    variables: Mapping[str, Any] | None = None,
) -> Workflow:
    """Start a workflow, now or at a time. The same key and input return the one that exists; other input is refused."""
    definition = find(name)
    asked = _ask(definition, input or {}, key, at, variables)
    born = _insert(definition, [asked], priority)
    if not born:
        return Workflow.objects.using(settings().database).get(pk=_living(definition, [asked])[asked["key"]])
    return _as_stored(definition, asked, born[0], priority)


def start_many(
    name: str | Definition,
    inputs: Iterable[Mapping[str, Any]],
    *,
    keys: Iterable[str] | None = None,
    at: datetime | None = None,
    priority: str | None = None,
) -> list[UUID]:
    """Start one workflow for each input, all or none. Returns their ids in the order of the inputs."""
    definition = find(name)
    inputs = list(inputs)
    names = [None] * len(inputs) if keys is None else list(keys)
    if len(names) != len(inputs):
        raise BadInput(f"{len(inputs)} inputs were given with {len(names)} keys; give one key for each input.")
    asked = [_ask(definition, input, key, at, None) for input, key in zip(inputs, names, strict=True)]
    with transaction.atomic(using=settings().database):
        slices = [asked[i : i + SLICE] for i in range(0, len(asked), SLICE)]
        return [pk for some in slices for pk in _insert_or_find(definition, some, priority)]


def _ask(
    definition: Definition,
    input: Mapping[str, Any],
    key: str | None,
    at: datetime | None,
    variables: Mapping[str, Any] | None,
) -> dict[str, Any]:
    for given, what in ((input, "input"), (variables or {}, "variables")):
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise BadInput(f"The {what} of {definition.name} must be a dict by name.")
    definition.check_input(input)
    encoded = encode(input, "The input")  # before anything else looks at it: what was encoded can be written out
    search = [f"{field}={input[field]}"[:300] for field in definition.search if field in input]
    return {
        "id": str(uuid7()),
        "key": None if key is None else text(key, "The key", 200),
        "at": None if at is None else moment(at, "The start time").isoformat(),
        "input": encoded,
        "search": search or None,
        "variables": encode(variables, "The variables") if variables else None,
    }


def _insert(definition: Definition, asked: list[dict[str, Any]], priority: str | None) -> list[tuple[Any, ...]]:
    """The rows that are new, as BORN names their columns. Those whose key is taken are missing."""
    database, most = settings().database, definition.max_recovery_attempts
    with connections[database].cursor() as cursor:
        cursor.execute(
            INSERT,
            {
                "rows": json.dumps(asked),
                "name": definition.name,
                "version": definition.version,
                "priority": _level(definition, priority),
                "persistence": definition.persistence,
                "max_recovery_attempts": settings().max_recovery_attempts if most is None else most,
                "stale_after": definition.stale_after,
                "run_limit": definition.run_limit,
            },
        )
        born: list[tuple[Any, ...]] = cursor.fetchall()
    if born:
        transaction.on_commit(poke, using=database)
    return born


def _insert_or_find(definition: Definition, asked: list[dict[str, Any]], priority: str | None) -> list[UUID]:
    ids = [UUID(row["id"]) for row in asked]
    born = {row[0] for row in _insert(definition, asked, priority)}
    if len(born) == len(asked):
        return ids
    living = _living(definition, [row for row, pk in zip(asked, ids, strict=True) if pk not in born])
    return [pk if pk in born else living[row["key"]] for row, pk in zip(asked, ids, strict=True)]


def _as_stored(definition: Definition, asked: dict[str, Any], born: tuple[Any, ...], priority: str | None) -> Workflow:
    """The row just written, without asking for it again."""
    workflow = Workflow(
        **dict(zip(BORN, born, strict=True)),
        name=definition.name,
        version=definition.version,
        key=asked["key"],
        priority=_level(definition, priority),
        persistence=definition.persistence,
        input=json.loads(asked["input"]),
        variables=json.loads(asked["variables"] or "{}"),
        search=asked["search"],
    )
    workflow._state.adding, workflow._state.db = False, settings().database
    return workflow


def _level(definition: Definition, priority: str | None) -> int:
    if priority is None:
        return definition.priority
    if priority not in LEVELS:
        raise BadInput(f"There is no priority {priority!r}; choose one of {', '.join(LEVELS)}.")
    return LEVELS[priority]


def _living(definition: Definition, asked: list[dict[str, Any]]) -> dict[str, UUID]:
    """What the keys stand for already: the newest generation of each, provided that its input is the same."""
    with connections[settings().database].cursor() as cursor:
        cursor.execute(
            """SELECT DISTINCT ON (w.key) w.key, w.id, w.input = a.input::jsonb
               FROM json_to_recordset(%s::json) AS a(key text, input text)
               JOIN rekindle_workflow w ON w.name = %s AND w.key = a.key ORDER BY w.key, w.generation DESC""",
            [json.dumps(asked), definition.name],
        )
        found = cursor.fetchall()
    for key, pk, same in found:
        if not same:
            raise KeyTaken(
                f"{definition.name} {key} was started before with other input (workflow {pk}); use another key."
            )
    return {key: pk for key, pk, _ in found}

"""Is what is stored of a workflow whole? Replay reads steps by their place on a path: a gap would shift all that follow.

A flaw is never run over. The workflow is put aside with the sentence, and nobody but an operator takes it up again.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Protocol

from .paths import DESK


class Placed(Protocol):
    """A step, recorded or stored."""

    path: str
    position: int
    name: str
    occurrence: int
    kind: str
    result: Any

    @property
    def status(self) -> str: ...


def root_of(ticket: str) -> str:
    """The path on which a run begins: a raised ticket's handler has one of its own."""
    return f".!{ticket}." if ticket else "."


def is_read(path: str, ticket: str) -> bool:
    """Whether a run would read this path: a ticket leaves all others behind."""
    return path == DESK or (path.startswith(root_of(ticket)) if ticket else not path.startswith(".!"))


def flaw(input: Any, variables: Any, ticket: str, steps: Iterable[Placed]) -> str:
    """What is wrong, as a sentence; empty if everything can be read."""
    for what, value in (("input", input), ("variables", variables)):
        if not isinstance(value, dict):
            return f"its {what} must be an object, and is a {type(value).__name__}"
    paths: dict[str, list[Placed]] = defaultdict(list)
    for step in sorted(steps, key=lambda step: (step.path, step.position)):
        if step.status != "dropped" and is_read(step.path, ticket):
            paths[step.path].append(step)
    branches = {root_of(ticket), DESK}
    for path, placed in paths.items():
        for position, step in enumerate(placed):
            if step.position != position:
                return f"step {position} of path {path} is missing, although {step.name} after it is recorded"
            if step.kind == "parallel":
                suffix = f"~{step.occurrence}" if step.occurrence > 1 else ""
                branches.add(f"{path}{step.name}{suffix}")
    for path in paths:
        if path not in branches and path.rstrip(".").rpartition(".")[0] not in branches:
            return f"path {path} belongs to no parallel block that is recorded"
    return ""

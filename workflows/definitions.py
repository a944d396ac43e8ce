"""What can be run: definitions, found in each installed app's `workflows.py` and in the modules the settings name.

Importing this imports no model, so an app may define its workflows anywhere.
"""

import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from django.utils.module_loading import autodiscover_modules

from .conf import settings
from .errors import BadInput, UnknownWorkflow
from .values import text

Function = Callable[..., Any]
LEVELS = {"critical": 0, "high": 1, "normal": 2, "low": 3, "idle": 4}
TICKET = 70  # characters of its name: it becomes part of a path, with the number of its round behind it


@dataclass(eq=False)
class Definition:
    """A workflow's name, version and body, and what holds for all of its runs."""

    name: str
    function: Function
    version: int = 1
    search: tuple[str, ...] = ()
    persistence: Literal["aggressive", "lazy"] = "aggressive"
    priority: int = LEVELS["normal"]
    max_recovery_attempts: int | None = None
    stale_after: float | None = None
    run_limit: float | None = None
    tickets: dict[str, Function] = field(default_factory=dict)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def ticket(self, name: str) -> Callable[[Function], Function]:
        """Register where a ticket of this name jumps to: a body with the same arguments."""
        if not text(name, "The ticket's name", TICKET) or "." in name or "~" in name:
            raise ValueError(f"{name!r} cannot name a ticket: no dots, no tildes, not empty.")

        def register(function: Function) -> Function:
            self.tickets[name] = function
            return function

        return register

    def check_input(self, input: Mapping[str, Any]) -> None:
        try:
            self._signature.bind(None, **input)
        except TypeError as error:
            raise BadInput(f"The input does not fit {self.name}{self._signature}: {error}.") from None

    def misfit(self, input: Mapping[str, Any]) -> bool:
        """True if stored input no longer fits the code."""
        try:
            self.check_input(input)
        except BadInput:
            return True
        return False

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    @cached_property
    def fingerprint(self) -> str:
        """Changes whenever the code may have changed: what refused a workflow once refuses it again until this differs."""
        module = sys.modules.get(self.function.__module__)
        try:
            source = inspect.getsource(module) if module else ""
        except (OSError, TypeError):
            source = self.function.__code__.co_code.hex()
        return hashlib.sha256(f"{self.version}\n{settings().release}\n{source}".encode()).hexdigest()[:16]


_known: dict[str, Definition] = {}
duplicates: list[tuple[Definition, Definition]] = []  # reported by a system check


def workflow(
    name: str,
    *,
    version: int = 1,
    search: tuple[str, ...] = (),
    persistence: Literal["aggressive", "lazy"] = "aggressive",
    priority: str = "normal",
    max_recovery_attempts: int | None = None,
    stale_after: float | None = None,
    run_limit: float | None = None,
) -> Callable[[Function], Definition]:
    """Make a function durable. The name is explicit: it outlives renames of the function."""
    text(name, "The workflow's name", 100)
    if priority not in LEVELS:
        raise ValueError(f"There is no priority {priority!r}; choose one of {', '.join(LEVELS)}.")

    def define(function: Function) -> Definition:
        definition = Definition(
            name,
            function,
            version,
            search,
            persistence,
            LEVELS[priority],
            max_recovery_attempts,
            stale_after,
            run_limit,
        )
        before = _known.get(name)
        if before and (before.function.__module__, before.function.__qualname__) != (
            function.__module__,
            function.__qualname__,
        ):
            duplicates.append((before, definition))
        _known[name] = definition
        return definition

    return define


def discover() -> dict[str, Definition]:
    """Import every module that may define workflows, once, and return all definitions by name."""
    autodiscover_modules("workflows")
    for module in settings().modules:
        importlib.import_module(module)
    return _known


def find(name: str | Definition) -> Definition:
    if isinstance(name, Definition):
        return name
    if name not in _known:
        discover()
    if name not in _known:
        known = ", ".join(sorted(_known)) or "none"
        raise UnknownWorkflow(f"No workflow is called {name!r} here. Known: {known}.")
    return _known[name]

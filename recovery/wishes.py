"""Reading the dialog's form: the reason, the fence that was seen, and variables with their types."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from workflows.errors import BadValue
from workflows.models import Workflow
from workflows.values import parse, text
from workflows.variables import check_types, type_of

from .asking import Wish
from .redacting import HIDDEN, is_secret, redact, shown

REASON = 500
BEGINS = "v:"


@dataclass(frozen=True, slots=True)
class Variable:
    """A field of the dialog. What is hidden stays as it is unless something is typed."""

    name: str
    type: str
    text: str
    hidden: bool


@dataclass(frozen=True, slots=True)
class Change:
    name: str
    before: str
    after: str


def variables(workflow: Workflow, *, whole: bool, typed: Mapping[str, str] | None = None) -> list[Variable]:
    return [_variable(name, value, whole, typed or {}) for name, value in sorted(workflow.variables.items())]


def read(form: Mapping[str, str], workflow: Workflow, *, whole: bool) -> Wish:
    """Raises a refusal with a sentence if something typed cannot be meant."""
    path, _, basket = ("|" + form.get("basket", "")).rpartition("|")  # a wait is chosen as path|basket
    return Wish(
        reason=text(form.get("reason", "").strip(), "The reason", REASON),
        token=form.get("token", "")[:40],
        fence=_fence(form.get(f"seen-{workflow.pk}", "")),
        variables=_changed(form, workflow, whole),
        reset=form.get("reset") == "on",
        step=place(form.get("step", "")),
        ticket=form.get("ticket", "")[:80],
        basket=basket[:80],
        path=path.lstrip("|"),
        to=text(form.get("to", "").strip(), "The basket's name", 80),
        result=parse(form["result"], "The result") if form.get("result", "").strip() else None,
        done=form.get("done") == "on",
    )


def changes(workflow: Workflow, given: Mapping[str, Any], *, whole: bool) -> list[Change]:
    """The diff: what it was, what it will be."""
    return [
        Change(name, _said(name, workflow.variables.get(name), whole), _said(name, value, whole))
        for name, value in given.items()
    ]


def place(text: str) -> tuple[str, int] | None:
    """`path:position`, as in the address of a step."""
    path, _, position = text.rpartition(":")
    return (path, int(position)) if path and position.isdecimal() and len(position) < 10 else None


def ids(text: str, most: int) -> list[UUID]:
    """Ids joined by dots. ValueError if one is none."""
    return [UUID(part) for part in text.split(".")[:most] if part]


# -- parts ------------------------------------------------------------------------------------------------------------


def _variable(name: str, value: Any, whole: bool, typed: Mapping[str, str]) -> Variable:
    hidden = not whole and is_secret(name)
    text = "" if hidden else value if isinstance(value, str) else shown(value, whole=whole)
    return Variable(name, type_of(value), typed.get(f"{BEGINS}{name}", text), hidden)


def _changed(form: Mapping[str, str], workflow: Workflow, whole: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in variables(workflow, whole=whole):
        typed = form.get(f"{BEGINS}{field.name}")
        if typed is None or typed.replace("\r\n", "\n") == field.text:
            continue
        before = workflow.variables[field.name]
        value = typed if isinstance(before, str) else parse(typed, f"The variable {field.name}")
        if not whole and value != before and HIDDEN in str(redact(before)) and not field.hidden:
            raise BadValue(
                f"{field.name} holds what you may not see; changing it needs the permission rekindle.see_payload."
            )
        if value != before:
            found[field.name] = value
    if name := form.get("new-name", "").strip():
        typed = form.get("new-value", "")
        try:
            found[text(name, "The variable's name", 80)] = parse(typed, f"The variable {name}")
        except BadValue:
            found[name] = typed
    check_types(workflow.variables, found)
    return found


def _fence(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 19 else None


def _said(name: str, value: Any, whole: bool) -> str:
    return HIDDEN if not whole and is_secret(name) and value is not None else shown(value, whole=whole)

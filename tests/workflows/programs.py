"""Random workflow programs: how they are made, what they mean, and the one definition that runs them.

A program is JSON: {"body": nodes, "handler": nodes}. `expected` says what it must return, whatever happens to it; the
ledger, a list outside the database, says which bodies began and with which results the run went on.
"""

import itertools
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from workflows import Backoff, Run, error_pend, pend, pend_again, workflow
from workflows.errors import StepFailed, TimedOut
from workflows.models import Policy

Node = dict[str, Any]
Program = dict[str, Any]
SOON = Backoff(0.01)


class Ledger:
    """What happened, told by the bodies themselves. `on_body` may be a fault that strikes inside one."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.went: list[tuple[str, Any]] = []
        self.on_body: Callable[[Run], None] = lambda run: None
        self.numbers = itertools.count(1)

    def open(self) -> None:
        self.__init__()  # type: ignore[misc]


ledger = Ledger()


# -- making -----------------------------------------------------------------------------------------------------------

LEAVES = [
    "ok",
    "flaky",
    "fails",
    "again",
    "pends",
    "error",
    "queue",
    "sleep",
    "pend",
    "late",
    "receive",
    "set",
    "set_in",
]
LEAVES += ["now", "random", "uuid", "atomic", "atomic", "set", "swallow", "timed"]


@st.composite
def programs(draw: st.DrawFn, *, most: int = 5) -> Program:
    program = {"body": draw(_nodes(2, most, tickets=True)), "handler": draw(_nodes(0, 2, tickets=False))}
    for n, node in enumerate(_walk(program["body"] + program["handler"])):
        node["n"] = f"n{n}"
    return program


@st.composite
def _nodes(draw: st.DrawFn, depth: int, most: int, *, tickets: bool) -> list[Node]:
    kinds = LEAVES + ["parallel", "parallel", "loop"] * (depth > 0) + ["ticket"] * tickets
    return [_node(draw, draw(st.sampled_from(kinds)), depth, tickets) for _ in range(draw(st.integers(1, most)))]


def _node(draw: st.DrawFn, kind: str, depth: int, tickets: bool) -> Node:
    node: Node = {"do": kind}
    if kind in ("ok", "flaky", "again"):
        node["on_crash"] = draw(st.sampled_from(["rerun", "rerun", "later", "hold", "fail"]))
    if kind in ("flaky", "fails"):
        node["times"] = draw(st.integers(1, 2))
    if kind == "parallel":
        node["branches"] = [draw(_nodes(depth - 1, 2, tickets=tickets)) for _ in range(draw(st.integers(1, 3)))]
    if kind == "loop":
        node["times"] = draw(st.integers(1, 2))
        node["body"] = draw(_nodes(depth - 1, 2, tickets=False))
    return node


def _walk(nodes: list[Node]) -> list[Node]:
    found = []
    for node in nodes:
        inner = [one for branch in node.get("branches", ()) for one in branch] + node.get("body", [])
        found += [node, *_walk(inner)]
    return found


# -- meaning ----------------------------------------------------------------------------------------------------------


class Jump(Exception):
    """A ticket."""


def expected(program: Program) -> Any:
    try:
        return _expected(program["body"])
    except Jump:
        return ["jumped", *_expected(program["handler"])]


def _expected(nodes: list[Node]) -> list[Any]:
    results: list[Any] = []
    for node in nodes:
        match node["do"]:
            case "ticket":
                raise Jump
            case "sleep" | "set":
                results.append(None)
            case "fails":
                results.append("failed")
            case "late":
                results.append("nobody came")
            case "now" | "random" | "uuid":
                results.append("value")
            case "pend":
                results.append("answered")
            case "receive":
                results.append(f"letter {node['n']}")
            case "parallel":
                results.append([_expected(branch) for branch in node["branches"]])
            case "loop":
                results.append([_expected(node["body"]) for _ in range(node["times"])])
            case _:
                results.append(node["n"])
    return results


def has_ticket(program: Program) -> bool:
    return any(node["do"] == "ticket" for node in _walk(program["body"]))


def variables(program: Program) -> dict[str, Any]:
    """What is set at the end, if no ticket cut it short."""
    return {node["n"]: node["n"] for node in _walk(program["body"]) if node["do"] in ("set", "set_in")}


# -- running ----------------------------------------------------------------------------------------------------------


@workflow("program")
def play(run: Run, program: Program) -> list[Any]:
    return _play(run, program["body"])


@play.ticket("out")
def out(run: Run, program: Program) -> list[Any]:
    return ["jumped", *_play(run, program["handler"])]


def _play(run: Run, nodes: list[Node]) -> list[Any]:
    return [_act(run, node) for node in nodes]


def _act(run: Run, node: Node) -> Any:
    n: str = node["n"]
    match node["do"]:
        case "ticket":
            run.ticket("out")
        case "sleep":
            return run.sleep(0.02)
        case "set":
            return run.set(**{n: n})
        case "now" | "random" | "uuid":
            place = f"{run.path}{run._position}"
            _went(f"{run.id}{place}", str(getattr(run, node["do"])()))
            return "value"
        case "pend":
            return run.pend(n)
        case "late":
            try:
                run.pend(n, timeout=0.01)
            except TimedOut:
                return "nobody came"
        case "receive":
            return run.receive(n)
        case "parallel":
            branches = {f"b{i}": _branch(branch) for i, branch in enumerate(node["branches"])}
            return list(run.parallel(n, branches))
        case "loop":
            return [_play(run, node["body"]) for _ in range(node["times"])]
        case "swallow":
            try:
                run.sleep(0.01)
            except BaseException:
                pass
            return _step(run, node, lambda: n)
        case "fails":
            try:
                return _step(run, node, _raise, retries=node["times"], backoff=SOON)
            except StepFailed:
                return "failed"
    return _step(run, node, lambda: _answer(run, node), **_terms(node))


def _branch(nodes: list[Node]) -> Callable[[Run], list[Any]]:
    return lambda run: _play(run, nodes)


def _terms(node: Node) -> dict[str, Any]:
    match node["do"]:
        case "flaky":
            return {"retries": node["times"] + 1, "backoff": SOON, "on_crash": node["on_crash"]}
        case "ok" | "again":
            return {"on_crash": node["on_crash"]}
        case "atomic":
            return {"atomic": True}
        case "queue":
            return {"backoff": SOON}
        case "timed":
            return {"timeout": 60}
    return {}


def _answer(run: Run, node: Node) -> Any:
    """The body's answer: the first tries of some pend or raise, judged by what the database says of earlier ones."""
    n = node["n"]
    first = not run._body or run._body.step.failures < node.get("times", 1)
    before = run._body.step.error if run._body else None
    match node["do"]:
        case "flaky" if first:
            raise ValueError(before)
        case "again" if run.attempt == 1:
            return pend_again(n)
        case "error" if run.attempt == 1:
            return error_pend(n, "not now")
        case "queue" if first:
            return error_pend("retry_queue", "later")
        case "pends":
            return pend(n, n)
        case "set_in":
            run.set(**{n: n})
        case "atomic":
            Policy.objects.create(name=run.idempotency_key)
    return n


def _raise() -> None:
    raise ValueError("for good")


def _step(run: Run, node: Node, body: Callable[[], Any], **terms: Any) -> Any:
    place: list[str] = []

    def told() -> Any:
        place.append(run.idempotency_key)
        ledger.begun.append(run.idempotency_key)
        ledger.on_body(run)
        answer = body()
        return f"{answer}#{next(ledger.numbers)}" if isinstance(answer, str) else answer

    key = f"{run.id}{run.path}{run._position}"
    try:
        result = run.step(told, name=node["n"], **terms)
    except StepFailed:
        if terms.get("on_crash") == "fail":  # it died in there, and its author wants no second try
            return node["n"]
        raise
    _went(key, result)
    return node["n"] if result is None else result.partition("#")[0]


def _went(key: str, result: Any) -> None:
    ledger.went.append((key, result))

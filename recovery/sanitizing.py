"""Repairing a case document as seed 3 does, rule by rule and in its order. A pure function over the document.

The engine needs no repair of its rows: this says in the seed's words what its next claim will find.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from workflows.errors import Refused

HOLD = "workflow_temp_hold"

Document = dict[str, Any]


def sanitize(document: Document, units: Mapping[str, str]) -> Document:
    """The document as a resume would begin with it. `units` gives the type of each step: task, s_route or p_route."""
    case = deepcopy(document)
    paths = case["exec_paths"]
    if case.get("is_complete") is None:
        case["is_complete"] = not any(path["status"] == "started" or path["pend_workbasket"] for path in paths)
    if case["is_complete"]:
        return case
    if case["ticket"]:
        _hold_for_ticket(case)
    else:
        for path in paths:
            if path["status"] == "started":
                _hold_for_crash(path, units.get(path["step"], "task"))
    if not case["pend_exec_path"]:
        case["pend_exec_path"] = deepest_pend(paths)
    if not case["pend_exec_path"]:
        raise Refused("Could not find an execution path to pend to; the case cannot be repaired.")
    return case


def deepest_pend(paths: list[Document]) -> str:
    """The path with the most dots in its name among those with a basket; the first of equals wins (S3-046, S3-047)."""
    deepest, most = "", 0
    for path in paths:
        if path["pend_workbasket"] and path["name"].count(".") > most:
            deepest, most = path["name"], path["name"].count(".")
    return deepest


def _hold_for_ticket(case: Document) -> None:
    if not case["pend_exec_path"] and case["exec_paths"]:
        shortest = min(case["exec_paths"], key=lambda path: len(path["name"]))
        shortest |= {"status": "completed", "unit_response_type": "ok_pend", "pend_workbasket": HOLD}
        case["pend_exec_path"] = shortest["name"]
    for path in case["exec_paths"]:
        if path["name"] == case["pend_exec_path"]:
            path["ticket"] = case["ticket"]


def _hold_for_crash(path: Document, unit: str) -> None:
    path["status"] = "completed"
    path["pend_workbasket"] = path["prev_pend_workbasket"] or HOLD
    if path["unit_response_type"] is None:
        path["unit_response_type"] = "ok_pend_eor"
    elif path["unit_response_type"] == "ok_proceed" and unit != "p_route":
        path["unit_response_type"] = "ok_pend_eor" if unit == "s_route" else "ok_pend"

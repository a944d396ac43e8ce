"""A workflow as the case document of seed 3: `workflow_process_info-{id}`.

While a worker holds it, its paths are started; once it is an orphan, the document shows it sanitized, as the next
claim will find it. What a path is called, and where it pends, are the seed's words.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Max
from django.db.models.functions import Now

from workflows.conf import settings
from workflows.errors import NotFound
from workflows.integrity import is_read, root_of
from workflows.models import Event, Status, Step, Workflow
from workflows.variables import type_of

from .sanitizing import Document, deepest_pend, sanitize

QUIET = 5 * 60 * 1000  # milliseconds without a save after which seed 3 calls a started case orphaned

ENDED = (Step.Status.DONE, Step.Status.FAILED)


def case(workflow_id: UUID) -> dict[str, Any]:
    database = settings().database
    workflow = Workflow.objects.using(database).filter(pk=workflow_id).annotate(now=Now()).first()
    if workflow is None:
        raise NotFound(f"There is no workflow {workflow_id}; retention may have removed it.")
    steps = list(Step.objects.using(database).filter(workflow=workflow))
    saved_at = Event.objects.using(database).filter(workflow=workflow).aggregate(at=Max("at"))["at"]
    document = case_of(workflow, steps, saved_at)
    return {
        "key": f"workflow_process_info-{workflow.pk}",
        "process_info": document,
        "orphaned": is_orphaned(document, int(workflow.now.timestamp() * 1000)),
    }


def case_of(workflow: Workflow, steps: Sequence[Step], saved_at: datetime | None) -> Document:
    """The document of one workflow."""
    read = [step for step in steps if step.status != Step.Status.DROPPED and is_read(step.path, workflow.ticket)]
    read.sort(key=lambda step: (step.path, step.position))
    last = max((step for step in read if step.ended_at), key=lambda step: step.ended_at or 0, default=None)
    # A step is called by the name of its component here, so the two fields agree.
    document: Document = {
        "last_executed_step": last.name if last else "",
        "last_executed_comp_name": last.name if last else "",
        "pend_exec_path": "",
        "ts": int(saved_at.timestamp() * 1000) if saved_at else None,
        "is_complete": workflow.is_finished,
        "process_variables": [
            {"name": name, "value": value, "type": type_of(value)} for name, value in sorted(workflow.variables.items())
        ],
        "exec_paths": _paths(workflow, read),
        "ticket": workflow.ticket.partition("~")[0],
    }
    if workflow.status == Status.RUNNING and not workflow.worker_id:
        return sanitize(document, units(read))
    if not workflow.is_finished:
        document["pend_exec_path"] = deepest_pend(document["exec_paths"])
    return document


def units(steps: Sequence[Step]) -> dict[str, str]:
    """A choice is plain code here and evaluated on every replay; only parallel blocks are routes of their own."""
    return {step.name: "p_route" if step.kind == Step.Kind.PARALLEL else "task" for step in steps}


def is_orphaned(document: Document | None, now: int, threshold: int = QUIET) -> bool:
    """The four signs of seed 3, all of them. Here they are only information: a dead worker is the proof (C2, C36)."""
    if document is None or document["is_complete"] or document["pend_exec_path"]:
        return False
    if document["ts"] is None or now - document["ts"] < threshold:
        return False
    return any(path["status"] == "started" for path in document["exec_paths"])


def basket_of(step: Step) -> str:
    """Where a waiting step waits; one that waits for a time has a basket of the seed's own."""
    return step.basket or ("workflow_pause" if step.kind == Step.Kind.SLEEP else "retry_queue")


# -- parts ----------------------------------------------------------------------------------------------------------


def _paths(workflow: Workflow, steps: Sequence[Step]) -> list[Document]:
    root = root_of(workflow.ticket)
    names = sorted({step.path for step in steps})
    if root not in names and workflow.running_at:
        names.insert(0, root)
    return [_path(workflow, name, [step for step in steps if step.path == name], name == root) for name in names]


def _path(workflow: Workflow, name: str, steps: list[Step], is_root: bool) -> Document:
    step = steps[-1] if steps else None
    pends = [before.name for before in steps[:-1] if before.kind == Step.Kind.PEND]
    path: Document = {
        "name": name,
        "status": "completed",
        "step": step.name if step else "",
        "unit_response_type": _response(step),
        "pend_workbasket": "",
        "prev_pend_workbasket": pends[-1] if pends else "",
    }
    if step and step.status == Step.Status.WAITING:
        path["pend_workbasket"] = basket_of(step)
    # Whether a branch is over is not recorded: one whose steps have all ended counts as completed.
    elif workflow.status == Status.RUNNING and (is_root or (step and step.status not in ENDED)):
        path["status"] = "started"
    return path


def _response(step: Step | None) -> str | None:
    if step is None or step.status == Step.Status.AGAIN:
        return None
    if step.status == Step.Status.WAITING:
        error = step.kind == Step.Kind.STEP and not step.basket
        return step.response or ("error_pend" if error else "ok_pend")
    if step.kind == Step.Kind.PARALLEL or step.status in ENDED:
        return "ok_proceed"  # what failed has been dealt with, or has ended the case
    return None

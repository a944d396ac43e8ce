"""What a new generation keeps when a workflow is run again from a chosen step. Decided without the database.

Replay meets recorded steps in their order, path by path, so each path keeps a beginning of itself. On the chosen
path that is what lies before the chosen step, on the paths above it what lies before the block that leads there,
and that block is open again. Its other branches are entered again too, and keep all they have: what was done is read,
what was waiting waits on, what was open is judged as after a crash. Only a failure that ended such a branch is tried
anew, or the generation could only fail again. Blocks that had ended before stay as they are.
"""

from collections.abc import Iterable
from itertools import groupby

from .models import Step

ENDED = (Step.Status.DONE, Step.Status.FAILED)
UNDER_WAY = (Step.Status.OPEN, Step.Status.WAITING, Step.Status.AGAIN)


def keep(steps: Iterable[Step], chosen: Step) -> tuple[list[int], list[int]]:
    """The ids of the steps to copy, and of those among them that are open again. `steps` come in order of their ids."""
    steps = list(steps)
    roots = [root_of(step.path) for step in steps]  # in the order in which they were entered
    kept: list[int] = []
    opened: list[int] = []
    entered: dict[str, bool] = {}  # the branches of a kept block: entered again, or only remembered
    ordered = sorted(steps, key=lambda step: (step.path.count("."), step.path, step.position))  # blocks first
    for path, group in groupby(ordered, key=lambda step: step.path):
        root = root_of(path)
        if path != root and block_of(path) not in entered:
            continue  # its block runs again from its beginning
        if path == root and roots.index(root) > roots.index(root_of(chosen.path)):
            continue  # of a ticket that was raised later
        enters = entered[block_of(path)] if path != root else root == root_of(chosen.path)
        here = list(group)
        for step in here:
            block = branches_of(step) if step.kind == Step.Kind.PARALLEL else ""
            leads = block != "" and chosen.path.startswith(block)
            fails = step is here[-1] and _is_tried_anew(step)
            stays = not enters or (step.status in ENDED and not leads and not fails)
            if step.pk == chosen.pk or not (stays or _goes_on(step)):
                break
            kept.append(step.pk)
            if block:
                entered[block] = not stays
            if not stays and step.status not in UNDER_WAY:
                opened.append(step.pk)
            if leads:
                break
    return kept, opened


def root_of(path: str) -> str:
    """The body's own path, or that of the ticket's handler that was entered instead."""
    return f"{path[: path.index('.', 1)]}." if path.startswith(".!") else "."


def block_of(path: str) -> str:
    """Where the branches of the block lie to which this branch belongs: `.checks.` for `.checks.fraud.`"""
    return path[: path[:-1].rindex(".") + 1]


def branches_of(step: Step) -> str:
    return f"{step.path}{step.name}{f'~{step.occurrence}' if step.occurrence > 1 else ''}."


def _is_tried_anew(step: Step) -> bool:
    """Failed, and nothing came after it. What its author wants to fail after a crash stays failed."""
    return step.status == Step.Status.FAILED and step.on_crash != "fail"


def _goes_on(step: Step) -> bool:
    """False: it begins anew. What a ticket dropped does, unless its author wants to know that it may have taken effect."""
    return (
        step.kind == Step.Kind.PARALLEL
        or step.status in UNDER_WAY
        or (step.status == Step.Status.DROPPED and step.on_crash != "rerun")
    )

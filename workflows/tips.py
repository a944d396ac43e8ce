"""Where a workflow stopped: the last step of every path that had not been left behind."""

from collections.abc import Iterable, Iterator

from .integrity import root_of
from .models import Step


def failed_tips(steps: Iterable[Step], ticket: str) -> Iterator[Step]:
    """The failures that ended it. One that the body caught and went past is history: trying it anew would let the
    recorded steps after it no longer fit."""
    last: dict[str, Step] = {}
    for step in sorted(steps, key=lambda step: step.position):
        if step.status != Step.Status.DROPPED:
            last[step.path] = step
    yield from _failed(last, [root_of(ticket)])


def _failed(last: dict[str, Step], paths: Iterable[str]) -> Iterator[Step]:
    for path in paths:
        tip = last.get(path)
        if tip is None or tip.status == Step.Status.DONE:
            continue
        if tip.status == Step.Status.FAILED:
            yield tip
        if tip.kind == Step.Kind.PARALLEL:
            block = f"{path}{tip.name}~{tip.occurrence}." if tip.occurrence > 1 else f"{path}{tip.name}."
            depth = block.count(".") + 1
            yield from _failed(last, [one for one in last if one.startswith(block) and one.count(".") == depth])

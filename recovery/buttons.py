"""What may be done to a workflow now. A button that may not be pressed says why."""

from dataclasses import dataclass

from workflows.models import PauseReason, Status

from .verdict import Kind, Verdict
from .verdict.seen import Seen


@dataclass(frozen=True, slots=True)
class Button:
    act: str
    word: str
    why_not: str = ""
    look: str = ""  # go, bad
    key: str = ""


def buttons(seen: Seen, verdict: Verdict, *, may_act: bool) -> list[Button]:
    found = _ended(seen) if seen.workflow.is_finished else _alive(seen, verdict)
    if may_act:
        return found
    why = "Your role only looks: acting needs the permission rekindle.act_on_workflow."
    return [Button(each.act, each.word, why, each.look, each.key) for each in found]


def _alive(seen: Seen, verdict: Verdict) -> list[Button]:
    workflow = seen.workflow
    asked = (workflow.asked or {}).get("what", "")
    suspended = workflow.pause_reason == PauseReason.SUSPENDED or asked == "pause"
    pended = any(step.basket and step.kind != "signal" for step in seen.waits)
    found = []
    if suspended or (pended and workflow.status == Status.PAUSED):
        found.append(Button("resume", "Resume…", look="go"))
    if pended:
        found.append(Button("move", "Move…"))
    if not suspended:
        found.append(Button("pause", "Pause…", "It is being cancelled already." if asked == "cancel" else ""))
    found.append(Button("cancel", "Cancel…", "Its worker was asked to already." if asked == "cancel" else ""))
    found.append(Button("fail", "Fail…", look="bad", key="f"))
    if workflow.status == Status.RUNNING:
        found.append(Button("recover", "Recover…", _why_not_recover(seen, verdict), "go", "r"))
    elif workflow.pause_reason == PauseReason.BLOCKED:
        found.append(Button("reopen", "Reopen…"))
    return found


def _why_not_recover(seen: Seen, verdict: Verdict) -> str:
    if verdict.kind in (Kind.ORPHAN, Kind.LEFT, Kind.SILENT):
        return ""
    return f"Its worker {seen.workflow.worker} is alive and keeps what it holds; there is nothing to recover."


def _ended(seen: Seen) -> list[Button]:
    workflow = seen.workflow
    newer = "It was run again; act on the newer generation." if seen.successor else ""
    found = [Button("rerun", "Run again…", newer)]
    if workflow.status == Status.FAILED:
        discarded = "discarded" in (workflow.error or {})
        found.insert(0, Button("discard", "Put aside…", "It is put aside already." if discarded else ""))
    if workflow.status in (Status.FAILED, Status.CANCELLED):
        found.append(Button("recover", "Revive…", newer, "go", "r"))
    return found

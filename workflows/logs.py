"""What the log says of a workflow: one logger, `rekindle`, with the facts as `extra`, and never a payload.

An error's message may quote what the workflow was given, so a line names only the error's type; the rest is on the page.
Nothing that happens with every step, or with every workflow, is above DEBUG.
"""

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from .here import here

if TYPE_CHECKING:
    from .held import Held, Recorded

log = logging.getLogger("rekindle")

LATE = 60  # minutes after its time, beyond which a start is worth a warning


class Context(logging.Filter):
    """For a handler: lines that a step's body writes itself say which workflow, step, attempt and worker it is."""

    def filter(self, record: logging.LogRecord) -> bool:
        body = getattr(here, "body", None)
        if body is not None and not hasattr(record, "workflow"):
            vars(record).update(about(body.run._held, body.step.name, body.attempt))
        return True


def about(held: "Held", step: str = "", attempt: int | None = None, **more: Any) -> dict[str, Any]:
    """The `extra` of a line that concerns a workflow."""
    facts: dict[str, Any] = {"workflow": str(held.id), "workflow_name": held.name, "worker": held.journal.worker}
    if step:
        facts["step"] = step
    if attempt is not None:
        facts["attempt"] = attempt
    return facts | more


def claimed(held: "Held") -> None:
    """It begins here: for the first time, again, or after somebody died."""
    if held.is_recovery:
        attempt, most = held.recovery_attempts, held.max_recovery_attempts
        text = "Attempting recovery for workflow %s. Attempt %s/%s"
        log.info(text, held.id, attempt, most, extra=about(held, attempt=attempt, max_attempts=most))
    elif held.is_first and (late := lateness(held.due_at, held.claimed_by_clock)):
        log.warning("Late event execution (recovery)", extra=about(held, **late))
    elif log.isEnabledFor(logging.DEBUG):
        log.debug("%s %s", held.name, "started" if held.is_first else "resumed", extra=about(held))


def failed(held: "Held", error: str) -> None:
    log.error("%s failed: %s", held.name, error, extra=about(held, error=error))


def ended(held: "Held", outcome: str) -> None:
    """How the run of it in this process ended. What failed or was blocked has been told."""
    if outcome == "fenced":
        log.warning("%s is no longer ours: its run stopped", held.name, extra=about(held, held.last_step))
    elif outcome == "handed back":
        log.info("%s was handed back", held.name, extra=about(held, held.last_step))
    elif log.isEnabledFor(logging.DEBUG):
        log.debug("%s %s", held.name, outcome, extra=about(held))


def step_failed(held: "Held", step: "Recorded", error: str, *, will_retry: bool) -> None:
    then = f"it is tried again in {step.wake_in:.1f} s" if will_retry and step.wake_in is not None else "no try is left"
    facts = about(held, step.name, step.attempt, error=error, will_retry=will_retry)
    log.warning("Step %s of %s failed (%s): %s", step.name, held.name, error, then, extra=facts)


def step_retried(held: "Held", step: "Recorded") -> None:
    log.info("Step %s of %s is tried again", step.name, held.name, extra=about(held, step.name, step.attempt))


def lateness(target: datetime, actual: datetime) -> dict[str, Any] | None:
    """The facts of a late start, in the words of seed 2; None if it is in time."""
    minutes = (actual - target).total_seconds() / 60
    if minutes <= LATE:
        return None
    return {
        "targetTime": _iso(target),
        "actualTime": _iso(actual),
        "latenessMinutes": int(minutes),
        "latenessHours": f"{minutes / 60:.1f}",
        "reason": "Recovery from downtime",
    }


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

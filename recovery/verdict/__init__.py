"""Why a workflow is (not) moving, what happens next, and when: one pure function for page, attention and status strip.

seen      what is looked at, and what is said of it
held      somebody holds it, or held it and died
waiting   nobody holds it: it is due, or waits for a time, a person, a signal, other code
ended     it is over
whole     not one workflow, but Rekindle itself
"""

from workflows.models import Status

from .ended import ended
from .held import held
from .seen import Kind, Seen, Severity, Told, Verdict
from .waiting import waiting
from .whole import Whole, of_whole


def verdict(seen: Seen) -> Verdict:
    """Decides without the database, from what was loaded."""
    if seen.workflow.is_finished:
        return ended(seen)
    return held(seen) if seen.workflow.status == Status.RUNNING else waiting(seen)


__all__ = ["Kind", "Seen", "Severity", "Told", "Verdict", "Whole", "of_whole", "verdict"]

"""What can be refused, and what stops a run. A refusal is one sentence that says what was wrong and what to do."""


class Refused(Exception):
    """The act was not done; nothing was changed."""


class BadValue(Refused):
    """A value that cannot be stored as JSON."""


class UnknownWorkflow(Refused):
    """No definition of that name here."""


class BadInput(Refused):
    """The input does not fit the workflow's signature."""


class KeyTaken(Refused):
    """The same key was started before with other input."""


class NotFound(Refused):
    """No such workflow."""


class StepFailed(Exception):
    """A step is out of tries. Raised in the workflow's body, which may catch it and go another way."""

    def __init__(self, step: str, error: dict[str, object]) -> None:
        self.step, self.error = step, error
        super().__init__(f"step {step} failed: {error.get('type')}: {error.get('message')}")


class StepTimedOut(Exception):
    """A body did not return within its time-out. It counts as one failed try."""


class TimedOut(Exception):
    """Nobody came in time: a pend or a signal wait passed its deadline."""


class Stop(BaseException):
    """Ends the running of a path. A BaseException, so that `except Exception` in a body cannot swallow it."""


class Parked(Stop):
    """This path waits: for a time, for someone, or for both."""


class Dropped(Stop):
    """A ticket was raised; this path no longer counts."""


class Interrupted(Stop):
    """The worker is stopping, or an operator asked: the run ends before its next step."""


class Diverged(Stop):
    """The code does not fit what is recorded."""


class Fenced(Stop):
    """Somebody else has this workflow now; nothing more may be written."""


class Refusal(Stop):
    """The database would not store what this run wrote; the run fails with the reason."""


class Overtaken(Stop):
    """A step that this run was about to end had ended meanwhile, by an answer or an unheard commit: read again."""


FINAL = (Fenced, Refusal, Overtaken)  # after one of these the run writes nothing more but its last word


class Killed(Stop):
    """A simulated crash of the test kit: from here on nothing is written."""

"""The verbs of the command line.

`manage.py rekindle VERB` looks its verb up in `VERBS`; other apps may add theirs in `ready()`, as recovery does.
What was typed is read by `asking`, a verb does one thing and returns an `Answer`, and `table` prints it: a table for
people, JSON for programs.
"""

from . import acts, again, doctor, show, start, status, work
from .answer import Answer, Verb

VERBS: dict[str, Verb] = {
    "start": start.START,
    "list": show.LIST,
    "show": show.SHOW,
    **acts.ACTS,
    "signal": acts.SIGNAL,
    "reopen": again.REOPEN,
    "rerun": again.RERUN,
    "status": status.STATUS,
    "work": work.WORK,
    "doctor": doctor.DOCTOR,
}

__all__ = ["VERBS", "Answer", "Verb"]

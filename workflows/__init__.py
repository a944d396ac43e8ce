"""Durable workflows on Postgres.

The life of a workflow: `starting` checks its input against its definition and writes a row that is due, with the first
line of its diary, in the caller's transaction. `claiming` gives it to a worker: the fence goes up, nobody else may
write. `executing` runs its body from the top on a thread of the worker; `run` reads what is recorded and does what is
not, one `attempt` at a time, on one or several `paths`. What it did is gathered in `held` and committed by the
`journal`, for many runs at once, with the one statement of `moves`; only then does the run go on. An atomic step
commits with the body's own rows instead. A wait leaves memory: the row is paused, and `wake_at`, its alarm, brings it
back through the same claim. Who acts from outside uses `verbs`: what nobody holds changes at once, what is held gets a
request or a nudge that its holder cannot overlook. If the worker dies, its lock is free within milliseconds; recovery
finds that out and calls `takeover`, which makes what it held due again. The claim counts the attempt, replay reads the
finished steps, and the broken one runs again. A holder that wakes up late finds its fence broken and stops. At its end
the row keeps output or error, its steps and its diary until retention removes it.

The files, in the order in which data passes through them:

    conf, errors, ids, values, version    settings; refusals and stops; what can be stored
    definitions                           what can be run, found in each app's workflows.py
    models, schema                        the records, and what Postgres promises about them
    moves                                 every statement that changes a workflow's row
    starting, notify                      accepting work, waking whoever waits for it
    supervisor, worker, crew              processes and threads that run it
    connections, liveness, borrow         their connections: the lock, the engine's own, those of bodies
    claiming, integrity, held             taking due work; whether it is whole, and what is known of it while it is ours
    executing, run, paths, here           running the body
    overrun                               what is held for long, and bodies that do not come back
    attempt, atomic, retry, responses     one try of a step, and what may come of it
    baskets, variables                    where it waits for someone; what it tells everybody
    journal, applying                     making it durable
    verbs, tips, takeover, zombies        acts from outside; a worker's death; a holder that is none any more
    generations, keeping, adopting        running again what has ended; work begun elsewhere
    inline, testing                       all of it on the caller's connection, for authors
    logs, signals                         what it tells the outside
    checks, apps, routing, commands       how it meets Django and the command line
"""

from typing import TYPE_CHECKING, Any

from .definitions import Definition, workflow
from .responses import error_pend, pend, pend_again, proceed
from .retry import Backoff

if TYPE_CHECKING:
    from .adopting import adopt
    from .generations import reopen, rerun_from
    from .run import Run
    from .starting import start, start_many
    from .verbs import cancel, fail, pause, resume, revive, signal

_LATER = {
    "Run": "run",
    "adopt": "adopting",
    "reopen": "generations",
    "rerun_from": "generations",
    "start": "starting",
    "start_many": "starting",
    **dict.fromkeys(("cancel", "fail", "pause", "resume", "revive", "signal"), "verbs"),
}


def __getattr__(name: str) -> Any:
    """Whatever needs a model is imported when it is asked for, so that defining a workflow imports none."""
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(f".{_LATER[name]}", __name__), name)
    if name == "current":
        return __getattr__("Run").current
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Backoff",
    "Definition",
    "Run",
    "adopt",
    "cancel",
    "error_pend",
    "fail",
    "pause",
    "pend",
    "pend_again",
    "proceed",
    "reopen",
    "rerun_from",
    "resume",
    "revive",
    "signal",
    "start",
    "start_many",
    "workflow",
]

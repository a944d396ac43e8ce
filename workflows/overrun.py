"""What this process has held for long: whether somebody acted on it, and whether it has passed its run limit.

A body cannot be killed in a thread, and a worker that lives keeps what it holds. So the holder watches itself: since
the claim, by its monotonic clock. What to do past the limit is the policy's: flag (one event for each hold), extend
(an event, and another limit), recover (give it up: it counts as a recovery without progress, so it is tried a bounded
number of times) or fail. Runs that end within a second are never looked at.

The same look finds what is no longer ours although its body goes on, and what somebody did of which no wake-up told.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from django.db import connections, transaction
from django.db.models.functions import Now

from .conf import settings
from .errors import Fenced, Stop
from .held import Held
from .inline import InlineConnection
from .logs import about, failed
from .models import Workflow
from .moves import move
from .takeover import MODE, give_up
from .values import encode
from .zombies import refuse

log = logging.getLogger("rekindle")

EVERY = 1.0  # between two looks, and the age below which nothing is looked at

LOOK = f"""
SELECT w.id, w.nudges, COALESCE(p.run_limit, w.run_limit), COALESCE(p.on_run_limit, 'flag'), {MODE}
FROM rekindle_workflow w LEFT JOIN rekindle_policy p ON p.name = w.name LEFT JOIN rekindle_policy everyone ON everyone.name = '*'
WHERE w.worker_id = %(worker)s
"""  # noqa: S608  (constants)


class Overruns:
    """Looks at the runs of one worker. `leave` gets those that are no longer ours although their bodies go on, `tell`
    those on which somebody has acted."""

    def __init__(
        self,
        worker: int,
        everything: Mapping[str, Held],
        leave: Callable[[Held], None],
        tell: Callable[[Held], None],
    ) -> None:
        self._worker, self._everything, self._leave, self._tell_news = worker, everything, leave, tell
        self._next = 0.0

    def look(self) -> float:
        """Returns after how many seconds to look again."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + EVERY
            self._look(now)
        return self._next - now

    def _look(self, now: float) -> None:
        old = [held for held in list(self._everything.values()) if now - held.claimed_at >= EVERY and not held.leaving]
        if not old:
            return
        with connections[settings().database].cursor() as cursor:
            cursor.execute(LOOK, {"worker": self._worker, "mode": settings().mode})
            ours = {pk: said for pk, *said in cursor.fetchall()}
        for held in old:
            if held.id not in ours:
                self._lose(held)
                continue
            nudges, limit, act, mode = ours[held.id]
            if nudges > held.nudges:
                self._tell_news(held)
            if limit and now - held.claimed_at >= limit:
                self._judge(held, limit, "flag" if act == "recover" and mode != "enforce" else act)

    def _lose(self, held: Held) -> None:
        """An operator ended it, or a sweep took it, while its body hangs. A run about to return is not meant."""
        if not held.leaving:
            refuse(held, self._worker, InlineConnection())
            self._leave_behind(held)

    def _judge(self, held: Held, limit: float, act: str) -> None:
        seconds = time.monotonic() - held.claimed_at
        if act in ("flag", "extend"):
            due = held.overruns == 0 if act == "flag" else seconds >= limit * (held.overruns + 1)
            if due:
                held.overruns = max(1, int(seconds // limit))
                self._tell(held, limit, seconds, act, durable=False)
            return
        try:
            self._tell(held, limit, seconds, act, durable=True)  # and with it whatever else it had not written yet
        except Stop:
            return  # it is no longer ours, or has ended: the next look says which
        if held.leaving:
            return
        if act == "recover":
            given_up = give_up(held.id, self._worker, held.fence, "overrunning") is not None
        else:
            given_up = _fail(held, self._worker, limit)
        if given_up:
            held.refuse(Fenced())
            self._leave_behind(held)

    def _leave_behind(self, held: Held) -> None:
        self._leave(held)
        text = "%s is no longer ours and its body has not come back: a slot is lost"
        log.warning(text, held.name, extra=about(held, held.last_step))

    def _tell(self, held: Held, limit: float, seconds: float, act: str, *, durable: bool) -> None:
        open_now = held.open_names()
        for key in list(held.opening):
            held.opened(key)  # its start becomes known, also where persistence is lazy
        note = {"run_limit": limit, "held_for": round(seconds, 3), "on_run_limit": act, "open": open_now}
        held.write(event="workflow.overrunning", data=encode(note, "The overrun"), durable=durable)
        if not durable:
            held.journal.submit(held)
        log.warning(
            "%s is held for longer than its run limit of %g s: %s",
            held.name,
            limit,
            act,
            extra=about(held, step=", ".join(open_now), seconds=round(seconds, 3)),
        )


def _fail(held: Held, worker: int, limit: float) -> bool:
    """End it, provided that it is still ours; if its cancellation was asked for, that way."""
    names = held.open_names()
    where = f" in step {', '.join(names)}" if names else ""
    message = f"It was held for longer than its run limit of {limit:g} s{where}."
    error = {"type": "RunLimitPassed", "message": message, "open": names}
    ours = {"pk": held.id, "worker": worker, "fence": held.fence}
    with transaction.atomic(using=settings().database):
        workflow = Workflow.objects.using(settings().database).select_for_update().filter(**ours).first()
        if workflow is None:
            return False
        note: dict[str, Any] = {"run_limit": limit, "open": names}
        if workflow.asked and workflow.asked["what"] == "cancel":
            note |= workflow.asked
            move(workflow, "cancel", event="workflow.cancelled", data=note, finished_at=Now(), asked=None)
        else:
            move(workflow, "fail", event="workflow.failed", data=note, error=error, finished_at=Now(), asked=None)
    failed(held, "RunLimitPassed")
    return True

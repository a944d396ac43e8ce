"""The sweep by an operator's hand: what it would do, and doing it now.

What it would do is found out by doing it: the same look, the same take-over, the same records, all of it taken back
before anybody could see it.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from workflows.conf import settings
from workflows.errors import Refused
from workflows.models import Worker, Workflow
from workflows.takeover import BATCH, Taken, ended_holders

from . import duties
from .auditing import note_change
from .models import Duty
from .models.recovery import DetectedBy
from .outcomes import plan_in_words
from .sentences import count
from .sweep import Sweep

TOLD = 20  # workflows, one by one

log = logging.getLogger("rekindle")


def foresee() -> list[str]:
    """In sentences. Nothing is written, nobody is woken; it may wait half a second to look twice."""
    sweep = Sweep(DetectedBy.OPERATOR)
    sweep.lookout.look_once_before()
    with _quietly(), transaction.atomic(using=settings().database):
        sweep.once()
        said = [*_deaths(sweep), *_rescues(sweep.taken), *_left(sweep)]
        transaction.set_rollback(True, using=settings().database)
    return said or ["Nothing: every worker lives, and nothing is held by a dead one."]


def run_now(*, by: str, via: str = "page") -> Duty:
    """Recorded as a run of the duty, and in the audit."""
    duty = duties.run("sweep", DetectedBy.OPERATOR)
    if duty is None:
        raise Refused("Nothing was done: a sweep is just beginning elsewhere. Look at what it finds.")
    counts = {name: getattr(duty, name) for name in ("found", "recovered", "failed", "held", "skipped")}
    note_change("sweep", "duty", duty, by=by, via=via, after=counts)
    return duty


# -- sentences --------------------------------------------------------------------------------------------------------


def _deaths(sweep: Sweep) -> list[str]:
    why = {"silent": "it has been silent for too long"}
    dead = Worker.objects.using(settings().database).filter(pk__in=sweep.ended).order_by("pk")
    return [
        f"Worker {worker} would be declared dead: {why.get(worker.ended_why, 'its lock is free')}." for worker in dead
    ]


def _rescues(taken: list[Taken]) -> list[str]:
    said = [_rescue(row) for row in taken[:TOLD]]
    if len(taken) > TOLD:
        more = f"{len(taken) - TOLD:,}" if len(taken) < BATCH else f"at least {BATCH - TOLD:,}"
        said.append(f"The same for {more} more.")
    return said


def _rescue(row: Taken) -> str:
    who = f"{row['name']} {row['key'] or row['id']}"
    if row["outcome"] == "gave_up":
        return f"{who} would be given up: it was recovered {count(row['recovery_attempts'], 'time')} without progress."
    if row["outcome"] == "cancelled":
        return f"{who} would be cancelled, as was asked."
    attempt = f"recovery {row['recovery_attempts'] + 1} of {row['max_recovery_attempts']}"
    return f"{who} would run again, {attempt}: {plan_in_words({'kept': len(row['done']), 'again': row['open']})}."


def _left(sweep: Sweep) -> list[str]:
    """What dead workers would still hold, after all that a batch takes."""
    holders = ended_holders()
    held = Workflow.objects.using(settings().database).filter(worker__in=holders)[: BATCH + 1].count() if holders else 0
    if not held or len(sweep.taken) >= BATCH:
        return []
    many = f"more than {BATCH}" if held > BATCH else count(held, "workflow")
    if sweep.crowded:
        return [f"Then {many} would follow as fast as the first are claimed."]
    stays = "stays" if held == 1 else "stay"
    return [
        f"{many[0].upper()}{many[1:]} {stays} where {'it is' if held == 1 else 'they are'}: mode or policy says so."
    ]


@contextmanager
def _quietly() -> Iterator[None]:
    """What is not done is not logged; what other threads do is."""
    me = threading.get_ident()

    def elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != me

    log.addFilter(elsewhere)
    try:
        yield
    finally:
        log.removeFilter(elsewhere)

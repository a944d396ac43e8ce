"""The first run, as a cluster starts: django-q2 itself would look at its schedules only half a minute later."""

import logging
from typing import Any

from workflows.conf import settings

from . import duties, schedules

log = logging.getLogger("rekindle")


def on_spawn(**_: Any) -> None:
    """Called in every process of a cluster as it begins; the first of them runs the duties. Nothing may come out of
    here: the process would die of it and be born again, for ever."""
    try:
        if not _ours():
            return
        schedules.synchronise()
        if duties.FIRST in duties.overdue(intervals=0.5):
            _run()
    except Exception:
        log.exception("Recovery run failed")


def _run() -> None:
    log.info("Scheduler starting...")
    first = duties.run_as_scheduled(duties.FIRST)
    if first is None:
        return  # another process of this cluster is at it
    others = [duties.run_as_scheduled(name) for name in duties.DUTIES if name != duties.FIRST]
    if failed := [f"{duty.name}: {duty.error}" for duty in [first, *others] if duty and duty.error]:
        log.error("Recovery run failed", extra={"duties": failed})
    log.info("Initial recovery run: %s events processed", first.recovered)


def _ours() -> bool:
    """The cluster the settings name; if they name none, the host's default one."""
    from django_q.conf import Conf

    return bool((settings().cluster or Conf.PREFIX) == Conf.CLUSTER_NAME)

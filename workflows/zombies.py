"""Stopping a run that is no longer ours, and saying so once in the diary."""

import logging
from typing import Any

import psycopg

from .errors import Fenced
from .held import Held
from .logs import about

log = logging.getLogger("rekindle")

# An operator who ended or moved it raised the fence too; a run that stops for that reason is no zombie. What others did
# after it had lost its fence is no excuse.
TELL = """
WITH moved AS (
    UPDATE rekindle_workflow SET seq = seq + 1
    WHERE id = %(id)s AND fence > %(fence)s AND NOT COALESCE((
        SELECT data ? 'by' FROM rekindle_event WHERE workflow_id = %(id)s AND fence > %(fence)s ORDER BY seq LIMIT 1), false)
    RETURNING id, seq, fence
)
INSERT INTO rekindle_event (workflow_id, seq, type, fence, worker, path, step, data)
SELECT id, seq, 'workflow.zombie_refused', fence, %(worker)s, '', %(step)s, jsonb_build_object('refused_fence', %(fence)s::bigint)
FROM moved
"""


def refuse(held: Held, worker: int, connection: Any) -> None:
    """Nothing more of this run is written. However many of its writes are refused, it is told once."""
    held.refuse(Fenced())
    with held.lock:
        told, held.refusal_told = held.refusal_told, True
    if told or connection is None:
        return
    try:
        connection.execute(TELL, {"id": held.id, "fence": held.fence, "worker": worker, "step": held.last_step})
    except psycopg.Error as error:
        log.warning("a refused write could not be told: %s", error, extra=about(held))

"""A hundred thousand orphans at once: they come back in bounded batches, and healthy work does not stand behind them."""

import pytest
from django.db import connection

from tests.recovery.dead import worker
from workflows import start
from workflows.models import Worker, Workflow
from workflows.takeover import BATCH, CROWD

from . import flows  # noqa: F401
from .conftest import until
from .test_killed import all_ended

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.proof]

MANY = 100_000
ORPHANS = """
WITH born AS (
    INSERT INTO rekindle_workflow (id, name, version, generation, status, pause_reason, priority, lane, due_at, running_at, basket,
        worker_id, fence, applied, seq, nudges, input, variables, ticket, refused_by, persistence, recovery_attempts, recoveries,
        max_recovery_attempts)
    SELECT gen_random_uuid(), 'herd', 1, 1, 'running', '', 2, '', now(), now(), '', %s, 1, 0, 1, 0, '{}', '{}', '', '',
        'aggressive', 0, 0, 3
    FROM generate_series(1, %s) RETURNING id
)
INSERT INTO rekindle_event (workflow_id, seq, type, fence, path, step) SELECT id, 1, 'workflow.started', 1, '', '' FROM born
"""


def ended(**which):
    return Workflow.objects.filter(finished_at__isnull=False, **which).count()


def test_a_hundred_thousand_orphans_keep_nobody_waiting_long(workers):
    """Herd control, C22, I11: counted in workflows that were served before, not in seconds."""
    dead = worker(ended_why="died")
    with connection.cursor() as cursor:
        cursor.execute(ORPHANS, [dead.pk, MANY])
        cursor.execute("UPDATE rekindle_worker SET ended_at = now(), last_seen_at = now() WHERE id = %s", [dead.pk])
        cursor.execute("ANALYZE")
    slots = 2 * 32
    workers.start(processes=2, concurrency=32)
    until(lambda: ended() > 2000, "the herd is coming back", seconds=120)

    overtaken, most_waiting = [], 0
    for n in range(5):
        before = ended(recoveries=1)
        same, other = start("herd", {"tag": str(n)}), start("three", {"tag": str(n)})
        while ended(pk__in=[same.pk, other.pk]) < 2:
            waiting = Workflow.objects.filter(status="running", worker=None).count()
            most_waiting = max(most_waiting, waiting)
        overtaken.append(ended(recoveries=1) - before)

    assert most_waiting <= CROWD + 2 * BATCH
    assert max(overtaken) <= 3 * CROWD + slots
    assert Workflow.objects.filter(worker=dead).exists(), "the herd was too small to show anything"
    until(all_ended, "the whole herd has ended", seconds=1200)
    assert ended(status="completed", recoveries=1) == MANY
    assert Worker.objects.filter(ended_at=None).count() == 2

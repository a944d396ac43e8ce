"""Who gets what: one winner each, names in turns, limits kept, the dead take nothing."""

import threading

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from workflows import start, start_many
from workflows.claiming import FREE, why_not_claimed
from workflows.connections import connect_engine
from workflows.definitions import find
from workflows.inline import InlineConnection
from workflows.models import Event, Policy, Worker, Workflow
from workflows.moves import APPLY

from .hands import hands

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 120


def test_a_claim_raises_the_fence_and_empties_the_alarm():
    """S2-040, S2-041: and answers with what it took, ready to be run."""
    start("three", {"tag": "a"})

    with hands() as claimer:
        (held,) = claimer.claim(5)

    assert (held.name, held.input, held.fence, held.definition) == ("three", {"tag": "a"}, 1, find("three"))
    workflow = Workflow.objects.get()
    assert (workflow.status, workflow.worker_id, workflow.fence, workflow.wake_at) == (
        "running",
        claimer.worker,
        1,
        None,
    )
    assert Event.objects.get(seq=2).type == "workflow.started"


def test_never_more_is_claimed_than_there_are_free_slots():
    start_many("three", [{"tag": str(n)} for n in range(10)])

    with hands() as claimer:
        assert len(claimer.claim(3)) == 3

    assert Workflow.objects.filter(status="running").count() == 3


def test_a_worker_that_was_ended_claims_nothing():
    """◆ Otherwise a killed worker's claim commits after the sweep and is held for ever."""
    start("three")
    with hands() as claimer:
        Worker.objects.update(ended_at=Now())

        assert claimer.claim(5) == []

    assert Workflow.objects.get().worker is None


def test_a_claim_waits_for_a_sweep_that_has_locked_its_worker_and_then_takes_nothing():
    """◆ The sweep locks the worker's row for update before it looks."""
    start("three")
    taken = []
    with hands() as claimer:
        locker = connection.cursor()
        locker.execute("BEGIN")
        locker.execute("SELECT FROM rekindle_worker WHERE id = %s FOR UPDATE", [claimer.worker])
        thread = threading.Thread(target=lambda: taken.append(claimer.claim(5)))
        thread.start()
        thread.join(0.3)
        assert taken == []

        locker.execute("UPDATE rekindle_worker SET ended_at = now() WHERE id = %s", [claimer.worker])
        locker.execute("COMMIT")
        thread.join(10)

    assert taken == [[]]
    assert Workflow.objects.get().worker is None


def test_a_backlog_of_one_name_does_not_keep_others_waiting():
    """I11: names take turns."""
    start_many("three", [{"tag": str(n)} for n in range(200)])
    start("naps")

    with hands() as claimer:
        names = {held.name for held in claimer.claim(16)}

    assert names == {"three", "naps"}


def test_a_higher_priority_goes_first_within_a_name():
    start_many("three", [{"tag": str(n)} for n in range(5)], priority="low")
    start("three", {"tag": "now"}, priority="critical")

    with hands() as claimer:
        assert claimer.claim(1)[0].input == {"tag": "now"}


class Explained:
    """A connection that answers a claim with the work it made, instead of what it took."""

    def __init__(self, connection):
        self.connection, self.plans = connection, []

    def execute(self, *query):
        return self.connection.execute(*query)

    def cursor(self, row_factory):
        return self.Cursor(self)

    class Cursor:
        def __init__(self, whole):
            self.whole = whole

        def execute(self, query, given):
            plan = self.whole.execute("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + query, given).fetchone()[0]
            self.whole.plans.append(plan[0]["Plan"])

        def fetchall(self):
            return []


SLEEPERS = """
INSERT INTO rekindle_workflow SELECT sleeper.* FROM rekindle_workflow w CROSS JOIN generate_series(1, %s) AS n
CROSS JOIN LATERAL jsonb_populate_record(w, jsonb_build_object(
    'id', gen_random_uuid(), 'priority', n %% 4, 'wake_at', now() + n * interval '1 minute')) AS sleeper
"""


def test_however_many_sleep_a_claim_looks_only_at_what_it_takes():
    """◆ A probe per name and priority level: one scan in the order of priority reads every sleeper it passes.

    PostgreSQL 18 skips them by itself; those before it do not.
    """
    start("three")
    with connection.cursor() as cursor:
        cursor.execute(SLEEPERS, [40_000])
        Workflow.objects.filter(wake_at__lte=Now()).update(priority=4)
        cursor.execute("VACUUM ANALYZE rekindle_workflow")
        cursor.execute("SELECT pg_relation_size('rekindle_due') / current_setting('block_size')::int")
        pages = cursor.fetchone()[0]

    with hands() as claimer:
        claimer.connection, claimer.definitions = Explained(claimer.connection), {"three": find("three")}
        claimer.claim(8)
        (plan,) = claimer.connection.plans

    assert Workflow.objects.get(status="running").priority == 4
    looking = next(part for part in plan["Plans"] if part.get("Subplan Name") == "CTE due")
    assert looking["Shared Hit Blocks"] + looking["Shared Read Blocks"] < pages / 2


def test_racing_claims_never_pass_a_limit():
    """◆ A count in the locking statement is too old: limit 3 became 5. Often enough that one of the rounds would show it."""
    Policy.objects.create(name="three", concurrency=3)
    start_many("three", [{"tag": str(n)} for n in range(30)])
    begin, end = threading.Barrier(7), threading.Barrier(7)
    most = []

    def race():
        with hands() as claimer:
            claimer.definitions = {"three": find("three")}
            for _ in range(ROUNDS):
                begin.wait(10)
                claimer.claim(2)
                claimer.claim(2)
                end.wait(10)
        connection.close()

    threads = [threading.Thread(target=race) for _ in range(6)]
    for thread in threads:
        thread.start()
    for _ in range(ROUNDS):
        begin.wait(10)
        end.wait(10)
        most.append(Workflow.objects.filter(worker__isnull=False).update(worker=None, status="queued", wake_at=Now()))
    for thread in threads:
        thread.join(30)

    assert max(most) == 3


@pytest.mark.parametrize(
    ("policy", "reason"),
    [({"paused": True}, "policy paused"), ({"concurrency": 1}, "limit reached")],
)
def test_the_reason_why_a_due_workflow_is_not_claimed_is_the_claims_own(policy, reason):
    Policy.objects.create(name="three", **policy)
    start_many("three", [{"tag": "a"}, {"tag": "b"}])
    with hands() as claimer:
        Worker.objects.update(knows={"three": [1, "x"]})
        claimer.claim(5)

        left = Workflow.objects.filter(worker=None).first()
        assert claimer.claim(5) == []
        assert why_not_claimed(InlineConnection(), left.pk) == reason


def test_code_that_no_worker_has_is_the_reason_why_it_waits():
    """C8: blocked, visible, no attempt burned."""
    workflow = start("three")
    Workflow.objects.update(version=7)

    with hands() as claimer:
        assert claimer.claim(5) == []
        assert why_not_claimed(InlineConnection(), workflow.pk) == "no worker has this code"


def test_a_start_rolls_back_with_its_callers_transaction():
    def start_and_fail():
        with transaction.atomic():
            start("three")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        start_and_fail()

    assert not Workflow.objects.exists()


def test_a_claim_of_which_the_worker_never_heard_is_given_back():
    """I1: committed, but only the connection died; the worker lives, so no sweep would ever find it."""
    start_many("three", [{"tag": "heard"}, {"tag": "unheard"}])
    with hands() as claimer:
        heard, unheard = claimer.claim(2)

        assert claimer.give_back_unheard([heard.id]) == 1

        given = Workflow.objects.get(pk=unheard.id)
        assert (given.status, given.worker, given.recovery_attempts) == ("queued", None, 0)
        assert Workflow.objects.get(pk=heard.id).worker_id == claimer.worker
        assert given.events.last().type == "workflow.handed_back"
        assert [held.id for held in claimer.claim(2)] == [unheard.id]


@pytest.mark.parametrize("rows", [0, 1, 60])
def test_whatever_the_size_of_the_table_was_when_it_was_planned_only_what_is_taken_is_read(rows):
    """Plans are kept: one that reads the whole table would be kept while it grows a thousandfold."""
    start_many("three", [{"tag": str(n)} for n in range(rows)])
    claim = {"worker": 1, "known": "[]", "slots": 4, "share": 4}
    journal = {"worker": 1, "rows": "[]", "steps": "[]", "events": "[]"}

    with connect_engine("rekindle test", by_key=True) as engine:
        engine.execute("VACUUM ANALYZE rekindle_workflow")
        plans = [engine.execute(f"EXPLAIN (FORMAT JSON) {query}", given).fetchone()[0] for query, given in (
            (FREE.replace("{alone}", ""), claim), (APPLY, journal),
        )]  # fmt: skip

    scans = [
        node for plan in plans for node in nodes(plan[0]["Plan"]) if node.get("Relation Name") == "rekindle_workflow"
    ]
    reads = [node for node in scans if node["Node Type"] != "ModifyTable"]
    assert len(reads) == 4
    assert all("Index Cond" in node or "Recheck Cond" in node for node in reads), reads


def nodes(plan):
    yield plan
    for inner in plan.get("Plans", ()):
        yield from nodes(inner)

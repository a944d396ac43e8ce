"""Taking due work: never more than the free slots, names taking turns, limits kept.

One function says why a due workflow may not be claimed; the claim and the pages both use it.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from psycopg.rows import dict_row

from .definitions import Definition
from .held import Held, Journal, Recorded
from .integrity import flaw
from .moves import CLAIM, GIVE_BACK

# Name-level reasons, as SQL over `name`. A limited name is claimed apart, under the lock of its policy.
PAUSED = "EXISTS (SELECT FROM rekindle_policy p WHERE p.name = {name} AND p.paused)"
LIMITED = "EXISTS (SELECT FROM rekindle_policy p WHERE p.name = {name} AND p.concurrency IS NOT NULL)"
# Counted for a name that has a limit, and only among what is held: OFFSET keeps the planner from reading all of the name.
FULL = """EXISTS (SELECT FROM rekindle_policy p WHERE p.name = {name} AND CASE WHEN p.concurrency IS NOT NULL THEN p.concurrency <=
    (SELECT count(*) FROM (SELECT name FROM rekindle_workflow WHERE worker_id IS NOT NULL OFFSET 0) h WHERE h.name = p.name) END)"""
UNKNOWN = """NOT EXISTS (SELECT FROM rekindle_worker k WHERE k.ended_at IS NULL AND (k.knows -> {name} ->> 0)::int >= {version}
    AND k.knows -> {name} ->> 1 <> {refused_by})"""

# Whether a due row has to run in a process that holds nothing else: the condition of the index `rekindle_alone`.
ALONE = """(recovery_attempts >= 2 OR (recovery_attempts = 1 AND status = 'running')
    OR (max_recovery_attempts <= 1 AND (recovery_attempts = 1 OR status = 'running')))"""
# Judged last: a worker that knows it must also have a free slot. Who has one is counted once, however many rows ask.
BUSY = """NOT EXISTS (WITH free AS MATERIALIZED (SELECT k.knows FROM rekindle_worker k WHERE k.ended_at IS NULL AND NOT k.alone
        AND k.slots - k.lost > (SELECT count(*) FROM rekindle_workflow h WHERE h.worker_id = k.id))
    SELECT FROM free WHERE (free.knows -> {name} ->> 0)::int >= {version})"""

OBSTACLES = {
    "policy paused": PAUSED,
    "limit reached": FULL,
    "no worker has this code": UNKNOWN,
    "waits for its turn to run alone": ALONE,
    "all workers are busy": BUSY,
}

FREE = CLAIM.replace("{obstacles}", f"NOT {PAUSED} AND NOT {LIMITED}".format(name="n.name"))
WITHIN_LIMIT = CLAIM.replace("{obstacles}", "NOT " + PAUSED.format(name="n.name"))
COMPANY = {None: "", False: f"AND NOT {ALONE}", True: f"AND {ALONE}"}

MUST_RUN_ALONE = f"SELECT EXISTS (SELECT FROM rekindle_workflow WHERE wake_at <= now() AND {ALONE} AND name = ANY(%s))"  # noqa: S608


def obstacle(row: str) -> str:
    """SQL: the first reason why a due row of that alias is not claimable, else NULL."""
    names = {"name": f"{row}.name", "version": f"{row}.version", "refused_by": f"{row}.refused_by"}
    reasons = " ".join(f"WHEN {sql.format(**names)} THEN '{why}'" for why, sql in OBSTACLES.items())
    return f"CASE {reasons} END"


WHY_NOT = f"SELECT {obstacle('w')} FROM rekindle_workflow w WHERE id = %s"  # noqa: S608  (constants)

NEXT = """
SELECT min(EXTRACT(EPOCH FROM w.wake_at - clock_timestamp()))::float8
FROM unnest(%(names)s::text[]) AS n(name) CROSS JOIN generate_series(0, 4) AS level CROSS JOIN LATERAL (
    SELECT wake_at FROM rekindle_workflow WHERE name = n.name AND priority = level AND wake_at > now() ORDER BY wake_at LIMIT 1) w
"""

STEPS = """
SELECT workflow_id, path, position, name, occurrence, kind, status, response, attempt, failures, on_crash, idempotent, fence,
    basket, result, error, wake_at FROM rekindle_step
WHERE workflow_id = ANY(%s) AND status <> 'dropped' ORDER BY workflow_id, path, position
"""
INBOX = "SELECT id, workflow_id, name, data FROM rekindle_signal WHERE workflow_id = ANY(%s) AND consumed_by = '' ORDER BY id"


@dataclass
class Claimer:
    """Claims for one worker on one connection: what has to run alone, what need not, or (None) both."""

    connection: Any
    worker: int
    journal: Journal
    definitions: dict[str, Definition]
    alone: bool | None = None
    turn: int = 0
    one_name: bool = False  # the last claim found work of one name only

    def claim(self, slots: int) -> list[Held]:
        """Take up to that many due workflows and read what is recorded of them."""
        names = sorted(self.definitions)
        self.turn = (self.turn + 1) % max(1, len(names))
        names = names[self.turn :] + names[: self.turn]
        # First a fair share for everyone, then whatever is left for whoever has more. While only one name has work that is
        # one statement too many: it may take all, and whoever comes before it in the next turns is still seen first.
        share = slots if self.one_name else math.ceil(slots / max(1, len(names)))
        rows = self._take(FREE, names, slots, share)
        if rows and len(rows) < slots and share < slots:
            rows += self._take(FREE, names, slots - len(rows), slots - len(rows))
        self.one_name = len({row["name"] for row in rows}) == 1
        for name in self._limited(names) if len(rows) < slots else ():
            rows += self._take_limited(name, slots - len(rows))
        return self._read(rows)

    def next_due(self) -> float | None:
        """Seconds until the next workflow known here is due."""
        row = self.connection.execute(NEXT, {"names": sorted(self.definitions)}).fetchone()
        return row[0] if row else None

    def somebody_must_run_alone(self) -> bool:
        row = self.connection.execute(MUST_RUN_ALONE, [sorted(self.definitions)]).fetchone()
        return bool(row[0])

    def give_back_unheard(self, known: list[Any]) -> int:
        """The connection may break between a claim's commit and its answer. Nobody else would wake what it took."""
        return int(self.connection.execute(GIVE_BACK, {"worker": self.worker, "known": known}).rowcount)

    def refresh(self, held: Held) -> None:
        """Somebody acted on a workflow we hold: read its inbox, its variables and what was resumed or moved; let its paths
        look again."""
        look = "SELECT nudges, asked, variables FROM rekindle_workflow WHERE id = %s"
        row = self.connection.execute(look, [held.id]).fetchone()
        if row is None:
            return
        fresh = Recordings.read(self.connection, [held.id])
        with held.lock:
            for step in fresh.steps.get(held.id, ()):
                recorded = held.paths[step.path]
                known = recorded[step.position] if step.position < len(recorded) else None
                if known is None or known.status != "waiting":
                    continue
                if step.status in ("done", "again"):
                    step.due = None
                    _copy(step, known)
                elif step.status == "waiting" and step.attempt == known.attempt:
                    known.basket = step.basket  # it may have been moved
            held.inbox = [signal for signal in fresh.inbox.get(held.id, ()) if signal["id"] not in held.taken]
            held.nudges, held.asked, variables = row
            held.hear_variables(variables)
            held.changed.notify_all()

    def _take(self, query: str, names: Sequence[str], slots: int, share: int) -> list[dict[str, Any]]:
        if slots <= 0 or not names:
            return []
        known = [
            {"name": name, "version": self.definitions[name].version, "fingerprint": self.definitions[name].fingerprint}
            for name in names
        ]
        cursor = self.connection.cursor(row_factory=dict_row)
        query = query.replace("{alone}", COMPANY[self.alone])
        cursor.execute(query, {"worker": self.worker, "known": json.dumps(known), "slots": slots, "share": share})
        rows: list[dict[str, Any]] = cursor.fetchall()
        return rows

    def _limited(self, names: list[str]) -> list[str]:
        query = "SELECT name FROM rekindle_policy WHERE concurrency IS NOT NULL AND NOT paused AND name = ANY(%s) ORDER BY name"
        return [row[0] for row in self.connection.execute(query, [names])]

    def _take_limited(self, name: str, slots: int) -> list[dict[str, Any]]:
        """Lock the policy first, count in a second statement: a count in the locking one would be too old."""
        with self.connection.transaction():
            lock = "SELECT concurrency FROM rekindle_policy WHERE name = %s AND concurrency IS NOT NULL FOR UPDATE SKIP LOCKED"
            if not (limit := self.connection.execute(lock, [name]).fetchone()):
                return []
            count = "SELECT count(*) FROM rekindle_workflow WHERE name = %s AND worker_id IS NOT NULL"
            room = limit[0] - self.connection.execute(count, [name]).fetchone()[0]
            return self._take(WITHIN_LIMIT, [name], min(slots, room), min(slots, room))

    def _read(self, rows: list[dict[str, Any]]) -> list[Held]:
        held = [Held(row, self.definitions[row["name"]], self.journal) for row in rows]
        again = [row["id"] for row in rows if row["has_steps"] or row["nudges"]]
        if again:
            fresh = Recordings.read(self.connection, again)
            for one in held:
                one.inbox = fresh.inbox.get(one.id, [])
                for step in fresh.steps.get(one.id, ()):
                    step.due = one.due(step.wake_at) if step.wake_at else None
                    one.paths[step.path].append(step)
        for one in held:
            one.flaw = flaw(one.input, one.variables, one.ticket, chain.from_iterable(one.paths.values()))
        return held


@dataclass
class Recordings:
    """What is stored of some workflows: their steps in order, and their unread signals."""

    steps: dict[Any, list[Recorded]]
    inbox: dict[Any, list[dict[str, Any]]]

    @classmethod
    def read(cls, connection: Any, ids: list[Any]) -> "Recordings":
        found = cls({}, {})
        for workflow, *columns in connection.execute(STEPS, [ids]):
            found.steps.setdefault(workflow, []).append(Recorded(*columns))
        for pk, workflow, name, data in connection.execute(INBOX, [ids]):
            found.inbox.setdefault(workflow, []).append({"id": pk, "name": name, "data": data})
        return found


def why_not_claimed(connection: Any, workflow_id: Any) -> str | None:
    """The reason why a due workflow is not being claimed; None if nothing stands in its way."""
    row = connection.execute(WHY_NOT, [workflow_id]).fetchone()
    return row[0] if row else None


def _copy(source: Recorded, target: Recorded) -> None:
    for name in Recorded.__slots__:
        setattr(target, name, getattr(source, name))

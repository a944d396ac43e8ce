"""Each workflow's row, its steps, its diary and its recovery, as lines for COPY. The same every time but for the clock.

The newer, the more: the installation grows. A third of the workflows is younger than three days, and the last of the
finished ones ended just now.
"""

import random
from datetime import datetime, timedelta
from itertools import accumulate

from recovery.models import Recovery
from workflows.models import Event, Step, Workflow

from .sheets import Sheet
from .world import BASKETS, ERRORS, SEARCHABLE, STEPS, YOUNG, Size

NONE = "\\N"
LONG = 500  # steps of the one workflow that has many
TOLD = 5  # events of the others
KEPT = 5  # one of so many completed workflows still has its steps


class Stories:
    """Writes the four tables a workflow has rows in."""

    def __init__(self, url: str, size: Size) -> None:
        self.size = size
        self.chance = random.Random(size.workflows)
        self.held = 0
        # fmt: off
        self.workflows = Sheet(url, Workflow, "id", "name", "version", "key", "status", "pause_reason", "created_at", "due_at",
            "wake_at", "basket", "worker_id", "running_at", "started_at", "lateness", "finished_at", "fence", "seq", "input",
            "output", "error", "search", "recovery_attempts", "recoveries")
        self.steps = Sheet(url, Step, "workflow_id", "path", "position", "name", "kind", "status", "response", "failures", "fence",
            "began_at", "ended_at", "wake_at", "basket", "result", "error")
        self.events = Sheet(url, Event, "workflow_id", "seq", "at", "type", "fence", "worker", "path", "step", "attempt", "seconds")
        self.rescues = Sheet(url, Recovery, "workflow_id", "workflow_name", "workflow_key", "fence", "seq", "finding", "reason",
            "detected_by", "worker", "worker_name", "step", "in_step", "attempt", "max_attempts", "plan", "outcome", "last_seen_at",
            "detected_at", "due_at", "resumed_at", "settled_at", "seconds_to_detect", "seconds_to_resume")
        # fmt: on

    def write(self, begin: datetime, end: datetime) -> None:
        """As many as the size says, between two moments."""
        count, span = self.size.workflows, end - begin
        states, rescued = self._states(count), set(self.chance.sample(range(count), self.size.recoveries))
        long = count // 2  # old, and completed
        names = self._names(count)
        for i, name in enumerate(names):
            created = end - span * (1 - i / count) ** 2
            state = "completed" if i == long else states.get(i, "completed")
            version = 1 + 3 * i // count
            self._one(i, name, version, state, created, end, rescued=i in rescued or state == "orphan", long=i == long)

    def go_on(self, begin: datetime, end: datetime, count: int) -> None:
        """What was asked for and completed since; one in forty failed."""
        names = self._names(count)
        for i, name in enumerate(names):
            created = begin + (end - begin) * (i / count)
            number = self.size.workflows + int(begin.timestamp()) * 100_000 + i  # of no key that is there
            self._one(number, name, 3, "failed" if i % 40 == 0 else "completed", created, end)

    def close(self) -> None:
        for sheet in (self.workflows, self.steps, self.events, self.rescues):
            sheet.close()

    def _names(self, count: int) -> list[str]:
        return self.chance.choices(
            list(self.size.names), cum_weights=list(accumulate(self.size.names.values())), k=count
        )

    def _states(self, count: int) -> dict[int, str]:
        """Which of them are not completed: the youngest states first, because they have the least room."""
        found: dict[int, str] = {}
        for state, share in YOUNG.items():
            wanted = self.size.states[state]
            newest = max(int(count * share), 3 * wanted + len(found))
            room = [i for i in range(count - newest, count) if i not in found]
            found |= dict.fromkeys(self.chance.sample(room, wanted), state)
        return found

    def _one(
        self,
        i: int,
        name: str,
        version: int,
        state: str,
        created: datetime,
        now: datetime,
        *,
        rescued: bool = False,
        long: bool = False,
    ) -> None:
        chance, size = self.chance, self.size
        pk = _id(created, chance)
        key = f"{name[:3].upper()}-{i:07}" if i % 5 else NONE
        customer = chance.randrange(max(size.workflows // 20, 20))
        late = 300 + chance.random() * 900 if i % size.late == 0 and state == "completed" and not rescued else 0.02
        took = min(chance.expovariate(0.2) + 0.1, 3600)
        started = min(created + timedelta(seconds=late), now)
        ended = min(started + timedelta(seconds=took), now)
        worker = size.deaths + 1 + i % size.workers
        at, begun, done = created.isoformat(), started.isoformat(), ended.isoformat()

        status, pause, wake, basket, holder, finished = state, "", NONE, "", NONE, NONE
        error, attempts = NONE, 0
        if state in ("completed", "failed", "cancelled"):
            finished = done
            if state == "failed":
                kind = "RecoveryFailed" if rescued else "StepFailed"
                error = f'{{"type": "{kind}", "message": "step charge_card failed: no answer {i % 7}"}}'
                attempts = 3 if rescued else 0
        elif state == "running":
            self.held += 1
            worker = size.deaths + 1 + self.held % size.workers
            holder = str(worker)
        elif state == "orphan":
            status, wake, attempts = "running", _at(now, chance.random() * 60), 1
        elif state == "queued":
            wake, begun = at, NONE
        elif state == "pending":
            wake, begun = _at(now, 3600 + chance.random() * 30 * 86400), NONE
        else:
            status, pause = "paused", state
            if state == "pend":
                basket = BASKETS[i % len(BASKETS)]
            elif state != "suspended":
                wake = _at(now, 60 + chance.random() * (14 * 86400 if state == "sleep" else 3600))
            if state == "blocked":
                error = '{"type": "Changed", "message": "The code does not fit what is recorded."}'

        search = f'{{"customer={customer}"}}' if name in SEARCHABLE else NONE
        output = '{"ok": true}' if state == "completed" else NONE
        lateness = f"{late:.3f}" if begun != NONE else NONE
        seq = 2 * LONG + 2 if long else TOLD
        self.workflows.add(
            f"{pk}\t{name}\t{version}\t{key}\t{status}\t{pause}\t{at}\t{at}\t{wake}\t{basket}\t{holder}\t{begun}\t{begun}\t"
            f'{lateness}\t{finished}\t{1 + rescued}\t{seq}\t{{"customer": {customer}, "order_id": "{i}"}}\t{output}\t{error}\t'
            f"{search}\t{attempts}\t{int(rescued)}"
        )
        if long:
            self._long(pk, worker, started)
            return
        self._events(pk, status, worker, at, begun if begun != NONE else at, done, took)
        if state not in ("completed", "cancelled", "queued", "pending") or (state == "completed" and i % KEPT == 0):
            self._steps(pk, state, basket, wake, error, begun, done)
        if rescued:
            self._rescue(pk, name, key, state, started, now, chance)

    def _events(self, pk: str, status: str, worker: int, at: str, begun: str, done: str, took: float) -> None:
        self.events.add(f"{pk}\t1\t{at}\tworkflow.queued\t0\t{NONE}\t\t\t{NONE}\t{NONE}")
        self.events.add(f"{pk}\t2\t{begun}\tworkflow.started\t1\t{worker}\t\t\t1\t{NONE}")
        self.events.add(f"{pk}\t3\t{begun}\tstep.completed\t1\t{worker}\t.\t{STEPS[0]}\t1\t0.1")
        self.events.add(f"{pk}\t4\t{done}\tstep.completed\t1\t{worker}\t.\t{STEPS[1]}\t1\t{took:.3f}")
        self.events.add(f"{pk}\t5\t{done}\tworkflow.{status}\t1\t{worker}\t\t\t{NONE}\t{NONE}")

    def _steps(self, pk: str, state: str, basket: str, wake: str, error: str, begun: str, done: str) -> None:
        first = f"{pk}\t.\t0\t{STEPS[0]}\tstep\tdone\tok_proceed\t0\t1\t{begun}\t{begun}\t{NONE}\t"
        self.steps.add(f'{first}\t{{"name": "Ann"}}\t{NONE}')
        kind, name = {"sleep": ("sleep", "sleep"), "pend": ("pend", basket)}.get(state, ("step", STEPS[1]))
        if state == "completed":
            for place in (1, 2):
                self.steps.add(
                    f'{pk}\t.\t{place}\t{STEPS[place]}\tstep\tdone\tok_proceed\t0\t1\t{begun}\t{done}\t{NONE}\t\t"done"\t{NONE}'
                )
            return
        stands = {"sleep": "waiting", "pend": "waiting", "retry": "waiting", "failed": "failed"}.get(state, "open")
        if basket == "crash_review":
            kind, name, error = "step", STEPS[1], '{"type": "Crashed", "message": "its worker died"}'
        elif state == "failed":
            error = f'{{"type": "{ERRORS[int(pk[-1], 16) % len(ERRORS)]}", "message": "no answer"}}'
        elif state == "retry":
            error = '{"type": "TimeoutError", "message": "the card service did not answer"}'
        ended = done if state == "failed" else NONE
        fails = int(state in ("retry", "failed"))
        until = wake if stands == "waiting" else NONE
        self.steps.add(
            f"{pk}\t.\t1\t{name}\t{kind}\t{stands}\t\t{fails}\t1\t{begun}\t{ended}\t{until}\t{basket}\t{NONE}\t{error}"
        )

    def _rescue(
        self, pk: str, name: str, key: str, state: str, started: datetime, now: datetime, chance: random.Random
    ) -> None:
        """Found by the scheduler or a worker some moments after its own had died, and soon running again."""
        detect, resume = 0.5 + chance.expovariate(2), 0.2 + chance.expovariate(3)
        found = min(started + timedelta(seconds=detect), now)
        again = min(found + timedelta(seconds=resume), now)
        dead = 1 + int((1 - ((now - started).total_seconds() / (29 * 86400)) ** 0.5) * (self.size.deaths - 1))
        outcome = {"orphan": "pending", "failed": "gave_up"}.get(state) or chance.choices(
            ["recovered", "died_again", "refused"], weights=[96, 3, 1]
        )[0]
        waits = outcome == "pending"
        resumed = NONE if waits else again.isoformat()
        by = "worker" if chance.random() < 0.8 else "scheduled task"
        reason = "infrastructure_restart" if chance.random() < 0.9 else "stale_detection"
        self.rescues.add(
            f"{pk}\t{name}\t{'' if key == NONE else key}\t1\t3\tdead_worker\t{reason}\t{by}\t{dead}\t{host(dead)}:{1000 + dead}\t{STEPS[1]}\tt\t"
            f'{3 if outcome == "gave_up" else 1}\t3\t{{"kept": 1, "again": [{{"path": ".", "name": "{STEPS[1]}"}}]}}\t{outcome}\t{started.isoformat()}\t{found.isoformat()}\t'
            f"{found.isoformat()}\t{resumed}\t{resumed}\t{detect:.3f}\t{NONE if waits else f'{resume:.3f}'}"
        )

    def _long(self, pk: str, worker: int, begun: datetime) -> None:
        """One with many steps, each begun and completed in the diary."""
        seq = 1
        self.events.add(f"{pk}\t1\t{begun.isoformat()}\tworkflow.queued\t0\t{NONE}\t\t\t{NONE}\t{NONE}")
        for place in range(LONG):
            at, done = begun + timedelta(seconds=place), begun + timedelta(seconds=place + 0.8)
            step = f"page {place}"
            self.events.add(f"{pk}\t{seq + 1}\t{at.isoformat()}\tstep.started\t1\t{worker}\t.\t{step}\t1\t{NONE}")
            self.events.add(f"{pk}\t{seq + 2}\t{done.isoformat()}\tstep.completed\t1\t{worker}\t.\t{step}\t1\t0.8")
            seq += 2
            self.steps.add(
                f"{pk}\t.\t{place}\t{step}\tstep\tdone\tok_proceed\t0\t1\t{at.isoformat()}\t{done.isoformat()}\t{NONE}\t\t100\t{NONE}"
            )
        self.events.add(f"{pk}\t{seq + 1}\t{done.isoformat()}\tworkflow.completed\t1\t{worker}\t\t\t{NONE}\t{NONE}")


def host(worker: int) -> str:
    return f"host-{worker % 12}"


def _id(created: datetime, chance: random.Random) -> str:
    """As `uuid7` makes them: they sort by the time."""
    millis = int(created.timestamp() * 1000)
    return f"{millis << 80 | 7 << 76 | chance.getrandbits(12) << 64 | 2 << 62 | chance.getrandbits(62):032x}"


def _at(now: datetime, seconds: float) -> str:
    return (now + timedelta(seconds=seconds)).isoformat()

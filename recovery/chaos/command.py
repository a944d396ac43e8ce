"""`chaos`: the command. Starts, strikes, lets it settle, judges."""

import random
import secrets
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import connections
from django.db.models import Count, Q, Sum

from workflows.commands import Answer, Verb
from workflows.commands.answer import Options
from workflows.commands.asking import number
from workflows.commands.table import table
from workflows.conf import settings
from workflows.errors import Refused
from workflows.models import Workflow

POISONS = 2
SCRATCH = "CREATE TABLE IF NOT EXISTS rekindle_chaos (workflow_id uuid NOT NULL, line int NOT NULL)"
SHOWN = 3  # diaries of those who broke a promise


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=number(1, 3600), default=30, help="how long to strike (30)")
    parser.add_argument("--workflows", type=number(1, 20_000), default=300, help="how many to start meanwhile (300)")
    parser.add_argument(
        "--workers", type=number(1, 16), default=2, help="supervisors, of two worker processes each (2)"
    )
    parser.add_argument(
        "--settle", type=number(1, 3600), default=180, help="how long all may take to end afterwards (180)"
    )
    parser.add_argument("--seed", type=number(0, 999_999_999), help="repeat the choices of another run")
    parser.add_argument("--yes", action="store_true", help="also on a database that holds other workflows")


def run(options: Options) -> Answer:
    _refuse_other_peoples_work(options)
    seed = secrets.randbelow(1_000_000_000) if options["seed"] is None else options["seed"]
    _say(f"chaos --seed {seed}")
    with tempfile.TemporaryDirectory(prefix="rekindle-chaos-") as folder, _scratch_table():
        storm = _Storm(options, seed, Path(folder) / "ledger")
        broken = storm.run()
        return _answer(seed, storm, broken)


class _Storm:
    def __init__(self, options: Options, seed: int, book: Path) -> None:
        from . import flows  # noqa: F401  (from here on this process knows them)
        from .blows import Blows
        from .crew import Crew
        from .shapes import Accepted

        chance = random.Random(seed)  # noqa: S311
        self.options, self.book, self.chance = options, book, chance
        self.accepted = Accepted(f"{seed}-{secrets.token_hex(4)}", chance)
        self.crew = Crew(options["workers"], book)
        self.blows = Blows(self.crew, chance)
        self.settled_in = 0.0
        self._told = 0.0

    def run(self) -> list[Any]:
        from . import ledger, verdicts

        try:
            self._strike()
            self._settle()
        finally:
            self.blows.rest()
            self.crew.end()
        return verdicts.judge(self.accepted, ledger.read(self.book))

    def _strike(self) -> None:
        """Starts are spread over the whole time, so that every blow meets something."""
        seconds, wanted = self.options["seconds"], self.options["workflows"]
        poisons = min(POISONS, wanted - 1)
        self.accepted.start(min(wanted - poisons, 10), poisons)
        self._wait_for_workers()
        began = next_blow = time.monotonic()
        while (passed := time.monotonic() - began) < seconds:
            missing = int(wanted * passed / seconds) - len(self.accepted.names)
            if missing > 0:
                self.accepted.start(missing)
            if time.monotonic() >= next_blow:
                self.blows.strike()
                next_blow = time.monotonic() + self.chance.uniform(0.2, 1.2)
            self._tend()
        if (missing := wanted - len(self.accepted.names)) > 0:
            self.accepted.start(missing)

    def _wait_for_workers(self) -> None:
        end = time.monotonic() + 60
        while not self.crew.children():
            if time.monotonic() >= end:
                raise Refused("No worker came up within a minute; run manage.py work to see what is in its way.")
            self._tend()

    def _settle(self) -> None:
        """No blow any more; the frozen wake up. Everything has to come to its end by itself."""
        self.blows.wake(everybody=True)
        began = time.monotonic()
        while self._counted()["open"] and time.monotonic() - began < self.options["settle"]:
            self._tend()
        self.settled_in = time.monotonic() - began

    def _tend(self) -> None:
        self.crew.fill()
        self.blows.wake()
        self.accepted.answer()
        if time.monotonic() >= self._told + 1:
            self._told = time.monotonic()
            _say(
                "running {running}, open {open}, done {done}, struck {struck}, recovered {recovered}".format(
                    **self._counted()
                )
            )
        time.sleep(0.05)

    def _counted(self) -> dict[str, int]:
        mine = Workflow.objects.using(settings().database).filter(pk__in=self.accepted.names)
        counted: dict[str, int] = mine.aggregate(
            running=Count("pk", filter=Q(worker__isnull=False)),
            open=Count("pk", filter=Q(finished_at=None)),
            done=Count("pk", filter=Q(finished_at__isnull=False)),
            recovered=Sum("recoveries", default=0),
        )
        return counted | {"struck": sum(self.blows.struck.values())}


def _answer(seed: int, storm: _Storm, broken: list[Any]) -> Answer:
    from .verdicts import PROMISES, explain

    counted = storm._counted()
    rows = [
        (name, text, len([one for one in broken if one.promise == name]) or "kept") for name, text in PROMISES.items()
    ]
    struck = ", ".join(f"{name} {count}" for name, count in sorted(storm.blows.struck.items()))
    text = [
        f"{counted['done']} of {len(storm.accepted.names)} workflows ended; {counted['recovered']} recoveries; "
        f"settled {storm.settled_in:.1f} s after the last blow.",
        f"Struck: {struck or 'nothing'}.",
        "",
        table(("", "promise", "broken"), rows),
        *(f"{one.promise} broken by {one.workflow}: {one.why}" for one in broken),
    ]
    for workflow in list(dict.fromkeys(one.workflow for one in broken if len(one.workflow) == 36))[:SHOWN]:
        text += ["", workflow, *explain(workflow)]
    finding = f"{len(broken)} promises were broken; --seed {seed} repeats the choices." if broken else ""
    value = counted | {"seed": seed, "blows": dict(storm.blows.struck), "broken": [one._asdict() for one in broken]}
    return Answer(value, "\n".join([*text, "", f"seed {seed}"]), finding)


def _refuse_other_peoples_work(options: Options) -> None:
    from .shapes import PREFIX

    rows = Workflow.objects.using(settings().database).exclude(name__startswith=PREFIX)
    if not options["yes"] and rows.exists():
        raise Refused(
            "This database holds workflows that chaos did not start, and their workers could be struck; "
            "use an empty one (REKINDLE_DATA=/tmp/chaos, then migrate), or say --yes."
        )


@contextmanager
def _scratch_table() -> Iterator[None]:
    """Where atomic steps leave their effects. No constraint keeps a second one out: it would be seen."""
    with connections[settings().database].cursor() as cursor:
        cursor.execute(SCRATCH)
    try:
        yield
    finally:
        with connections[settings().database].cursor() as cursor:
            cursor.execute("DROP TABLE rekindle_chaos")


def _say(line: str) -> None:
    """Progress goes beside the answer, so that the answer can be read by a program."""
    print(line, file=sys.stderr, flush=True)


CHAOS = Verb("kill workers at random while workflows run, and prove that nothing is lost", add_arguments, run)

"""What the bench asks of an engine. An adapter says how; the rows in `measure` are the same for all."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from .processes import Program
from .server import Server

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


class Peer:
    """An engine under measurement: how it is installed, started, asked, and how its end is seen."""

    name: str
    label: str
    packages: tuple[str, ...] = ()
    program: str = ""
    accepted: str  # SQL: how many workflows there are
    completed: str  # SQL: how many workflows are completed
    recorded: str  # SQL: how many steps are stored
    bulk = 2_000  # how many workflows one bulk start holds in the row of starts
    thousands = {"bench1000": "step"}  # the workflows of 1,000 steps, and the figure each one gives
    crashes = 1  # how often a round repeats take-over and restart
    sweeps = False  # whether it looks out for dead workers

    def __init__(self, server: Server, data: Path, python: Path | None, patience: float) -> None:
        self.server = server
        self.patience = patience  # how long anybody waits for a dead worker's work
        self.data = data / self.name
        self.data.mkdir(parents=True, exist_ok=True)
        self.python = python or Path(sys.executable)
        self.ledger = self.data / "ledger"
        self.database = f"bench_{self.name}"
        self.template = f"bench_{self.name}_template"

    def settings(self, row: str) -> dict[str, Any]:
        """The fastest settings found for this row."""
        raise NotImplementedError

    def command(self, role: str, row: str) -> list[str]:
        return [str(self.python), str(HERE / "programs" / self.program), role]

    def env(self, row: str, database: str | None = None) -> dict[str, str]:
        return {
            "BENCH_URL": self.server.url(database or self.database),
            "BENCH_SETTINGS": json.dumps(self.settings(row)),
            "BENCH_LEDGER": str(self.ledger),
        }

    def build(self) -> None:
        """A database with the engine's schema, the template for all that follow."""
        for log in self.data.glob("*.log"):
            log.unlink()
        self.server.create(self.template)
        with self._start("migrate", "migrate", database=self.template) as program:
            program.finish()
        self.server.settle(self.template)

    def fresh(self) -> None:
        """An empty database and an empty ledger."""
        self.server.create(self.database, template=self.template)
        self.ledger.write_text("")

    def fill(self, paused: int, held: int) -> None:
        """So many workflows that wait, and so many in the hands of live workers."""
        raise NotImplementedError

    def workers(self, count: int, row: str, names: str = "AB") -> list[Program]:
        """Start workers at once and wait until each is up. The name is an identity that survives a restart."""
        programs = [self._start("worker", row, name, core=core) for core, name in enumerate(names[:count])]
        for program in programs:
            self.wait_until_up(program)
        return programs

    def wait_until_up(self, worker: Program) -> None:
        worker.up = worker.hear()["ready"]

    def client(self, row: str) -> Program:
        program = self._start("client", row)
        program.hear()
        return program

    def count(self, query: str) -> int:
        return int(self.server.ask(self.database, query))

    def drop(self) -> None:
        self.server.drop(self.database)
        self.server.drop(self.template)

    def _start(
        self, role: str, row: str, worker: str = "", database: str | None = None, core: int | None = None
    ) -> Program:
        env = os.environ | self.env(row, database) | {"BENCH_WORKER": worker}
        command = self.command(role, row)
        if core is not None and self.settings(row).get("own_core"):  # its threads wait for one interpreter lock anyway
            command = ["taskset", "-c", str(core % (os.cpu_count() or 1)), *command]
        return Program(command, env, self.data / f"{row}.log", ROOT)

"""Rekindle, through the commands a user types: `manage.py migrate`, `manage.py work`."""

import sys
from typing import Any

import psycopg

from .peer import HERE, ROOT, Peer
from .processes import Program, until

FILL = """
INSERT INTO rekindle_workflow (id, name, version, generation, status, pause_reason, priority, lane, due_at, wake_at, basket,
    worker_id, fence, applied, seq, nudges, input, variables, ticket, refused_by, persistence, recovery_attempts, recoveries,
    max_recovery_attempts)
SELECT gen_random_uuid(), 'bench3', 1, 1, '{status}', CASE '{status}' WHEN 'paused' THEN 'sleep' ELSE '' END, 2, '', now(),
    {wake_at}, '', {worker}, 1, 0, 1, 0, '{{}}', '{{}}', '', '', 'aggressive', 0, 0, 3
FROM generate_series(1, %s) AS n
"""


class Rekindle(Peer):
    name = "rekindle"
    label = "Rekindle"
    accepted = "SELECT count(*) FROM rekindle_workflow"
    completed = "SELECT count(*) FROM rekindle_workflow WHERE status = 'completed'"
    recorded = "SELECT count(*) FROM rekindle_step"
    bulk = 20_000
    thousands = {"bench1000": "step", "bench1000lazy": "step_lazy"}
    crashes = 3
    sweeps = True

    def settings(self, row: str) -> dict[str, Any]:
        """As it comes, with room for what the row asks: the drain fastest, like its peers. Nothing about recovery is touched."""
        return {"concurrency": 256 if row in ("drain", "takeover", "restart") else 64, "own_core": row == "drain"}

    def command(self, role: str, row: str) -> list[str]:
        if role == "client":
            return [sys.executable, str(HERE / "programs" / "rekindle_program.py"), "client"]
        if role == "worker":
            concurrency = str(self.settings(row)["concurrency"])
            return [sys.executable, "manage.py", "work", "--processes", "1", "--concurrency", concurrency]
        return [sys.executable, "manage.py", "migrate"]

    def env(self, row: str, database: str | None = None) -> dict[str, str]:
        common = super().env(row, database)
        return common | {
            "DATABASE_URL": common["BENCH_URL"],
            "DJANGO_SETTINGS_MODULE": "project.settings",
            "PYTHONPATH": str(ROOT),
            "REKINDLE_MODULES": "tests.bench.rekindle_flows",
            "REKINDLE_SECRET_KEY": "bench",
        }

    def fill(self, paused: int, held: int) -> None:
        with psycopg.connect(self.server.url(self.database), autocommit=True) as connection:
            connection.execute(
                "INSERT INTO rekindle_worker (host, pid, version, release, slots, knows, heartbeat_every, alone, pooled, "
                "incarnation, memory, lost, ended_why) SELECT 'bench', n, '', '', 1, '{}', 10, false, false, '', 0, 0, '' "
                "FROM generate_series(1, 10) AS n"
            )
            for count, status, worker, wake_at in (
                (paused, "paused", "NULL", "now() + n * interval '1 second' + interval '1 day'"),
                (held, "running", "1 + mod(n, 10)", "NULL"),
            ):
                connection.execute(FILL.format(status=status, worker=worker, wake_at=wake_at), [count])
            connection.execute("VACUUM ANALYZE")

    def wait_until_up(self, worker: Program) -> None:
        """A worker is up once it has its own row: only then can it be given work."""
        until(lambda: self._row_of(worker) is not None, 60, f"{worker} to be up", every=0.01, alive=worker)
        worker.up = self._row_of(worker)

    def _row_of(self, worker: Program) -> float | None:
        family = ", ".join(map(str, worker.family())) or "0"
        query = f"SELECT extract(epoch FROM started_at)::float FROM rekindle_worker WHERE ended_at IS NULL AND pid IN ({family})"
        return self.server.ask(self.database, query)

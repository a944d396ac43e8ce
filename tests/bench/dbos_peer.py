"""DBOS: workflows enqueued by a client, run by executors that poll a queue."""

from typing import Any

from .peer import Peer


class Dbos(Peer):
    name = "dbos"
    label = "DBOS"
    packages = ("dbos==3.3.*",)
    program = "dbos_program.py"
    accepted = "SELECT count(*) FROM dbos.workflow_status"
    completed = "SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'"
    recorded = "SELECT count(*) FROM dbos.operation_outputs"

    def settings(self, row: str) -> dict[str, Any]:
        """Found by trying. Few threads and a deep local queue drain fastest; a short poll answers fastest.

        `pool_pre_ping` off saves a round trip a step. Starting in the executor instead of enqueuing, and async
        workflows, were both slower (about 210 a second where the queue makes 360).
        """
        settings = {"concurrency": 200, "threads": 4, "pool": 20, "polling": 0.1, "engine": {"pool_pre_ping": False}}
        if row in ("takeover", "restart"):
            return settings | {"concurrency": 256, "threads": 256}
        if row in ("memory", "reruns"):
            return settings | {"concurrency": 64, "threads": 64}
        if row == "latency":
            return settings | {"polling": 0.005}
        return settings | {"own_core": row == "drain"}

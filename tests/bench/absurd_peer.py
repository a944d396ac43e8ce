"""absurd: tasks spawned by a client, claimed in batches by workers that poll."""

from typing import Any

from .peer import Peer


class Absurd(Peer):
    name = "absurd"
    label = "absurd"
    packages = ("absurd-sdk==0.5.*", "absurdctl==0.5.*")
    program = "absurd_program.py"
    accepted = "SELECT count(*) FROM absurd.t_bench"
    completed = "SELECT count(*) FROM absurd.t_bench WHERE state = 'completed'"
    recorded = "SELECT count(*) FROM absurd.c_bench"

    def settings(self, row: str) -> dict[str, Any]:
        """Found by trying. A worker of absurd has one connection, so several of them in threads of one process
        drain fastest; its own `concurrency` shares that one connection and makes it slower."""
        settings = {"clients": 8, "concurrency": 1, "batch": 32, "polling": 0.01, "claim_timeout": 120}
        if row in ("takeover", "restart"):
            return settings | {"clients": 1, "concurrency": 256, "batch": 256}
        if row == "memory":
            return settings | {"clients": 1, "concurrency": 64, "batch": 64}
        if row == "reruns":  # not about time: a short claim spares the bench two minutes
            return settings | {"clients": 1, "concurrency": 64, "batch": 64, "claim_timeout": 5}
        if row == "steps":
            return settings | {"clients": 1, "batch": 1, "polling": 0.1}
        if row == "latency":
            return settings | {"clients": 1, "batch": 1, "polling": 0.002}
        return settings | {"own_core": row == "drain"}

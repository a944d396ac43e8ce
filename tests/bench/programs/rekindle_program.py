"""Rekindle's client: `rekindle_program.py client`. Its worker and its migrations are the product's own commands."""

import os
import time

import client
import django
import psycopg
from django.db import transaction

django.setup()

from recovery.sweep import Sweep  # noqa: E402
from workflows import start, start_many  # noqa: E402


def serve() -> None:
    watch = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)

    def start_one(flow: str, n: int) -> str:
        return str(start(flow, {"n": n}).pk)

    def start_together(flow: str, count: int) -> float:
        with transaction.atomic():
            start_many(flow, [{"n": n} for n in range(count)])
            released = time.time()
        return released

    def finished(wanted: str) -> bool:
        query = "SELECT status = 'completed' FROM rekindle_workflow WHERE id = %s"
        return bool(watch.execute(query, [wanted]).fetchone()[0])

    def sweep(count: int) -> dict[str, list[float]]:
        """One look-out after the other, with the locks of all workers held here: nobody is dead."""
        watch.execute("SELECT pg_advisory_lock('rekindle_worker'::regclass::oid::int, id::int) FROM rekindle_worker")
        one, times = Sweep("worker"), []
        for _ in range(count):
            begun = time.perf_counter()
            found = one.once()["found"]
            times.append(time.perf_counter() - begun)
            assert not found
        return {"times": times}

    client.serve(start_one, start_together, finished, sweep=sweep)


if __name__ == "__main__":
    serve()

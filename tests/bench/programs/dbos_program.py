"""DBOS, as its own documentation would have it: `dbos_program.py worker|client|migrate`."""

import json
import os
import sys
import threading
import time
import uuid

import client
import ledger
import psycopg
import sqlalchemy
from dbos import DBOS, DBOSClient

URL = os.environ["BENCH_URL"]
SETTINGS = json.loads(os.environ["BENCH_SETTINGS"])
QUEUE = "bench"


@DBOS.step()
def add(n: int) -> int:
    return n + 1


@DBOS.step()
def add_noted(n: int, workflow: str) -> int:
    ledger.note("begin", workflow, str(n))
    return n + 1


@DBOS.step()
def short(workflow: str, step: str, seconds: float = 0.0) -> str:
    return ledger.short(workflow, step, seconds)


@DBOS.step()
def long(workflow: str, step: str) -> str:
    return ledger.long(workflow, step)


@DBOS.workflow()
def bench3(n: int) -> int:
    return add(add(add(n)))


@DBOS.workflow()
def bench1000(n: int) -> int:
    n = add_noted(n, f"steps-{n}")
    for _ in range(999):
        n = add(n)
    return n


@DBOS.workflow()
def hold(n: int) -> str:
    for step in "abc":
        short(str(n), step)
    return long(str(n), "d")


@DBOS.workflow()
def chain(n: int) -> str:
    for step in "abcd":
        short(str(n), step, 0.02)
    return str(n)


def worker() -> None:
    DBOS(
        config={
            "name": "bench",
            "system_database_url": URL,
            "executor_id": os.environ["BENCH_WORKER"],
            "application_version": "bench",
            "max_executor_threads": SETTINGS["threads"],
            "sys_db_pool_size": SETTINGS["pool"],
            "db_engine_kwargs": SETTINGS["engine"],
            "log_level": "ERROR",
            "console_log_level": "ERROR",
        }
    )
    DBOS.launch()
    DBOS.register_queue(
        QUEUE,
        worker_concurrency=SETTINGS["concurrency"],
        polling_interval_sec=SETTINGS["polling"],
        on_conflict="always_update",
    )
    print(json.dumps({"ready": time.time()}), flush=True)
    threading.Event().wait()


def serve() -> None:
    dbos = DBOSClient(system_database_url=URL, application_name="bench")
    engine = sqlalchemy.create_engine(URL.replace("postgresql://", "postgresql+psycopg://", 1))
    watch = psycopg.connect(URL, autocommit=True)

    def start(flow: str, n: int) -> str:
        return dbos.enqueue({"workflow_name": flow, "queue_name": QUEUE}, n).get_workflow_id()

    def start_together(flow: str, count: int) -> float:
        with engine.connect() as connection:
            with connection.begin() as transaction:
                for n in range(count):
                    options = {"workflow_name": flow, "queue_name": QUEUE, "workflow_id": str(uuid.uuid4())}
                    dbos.enqueue_in_transaction(connection, options, n)
                released = time.time()
                transaction.commit()
        return released

    def finished(wanted: str) -> bool:
        query = "SELECT status = 'SUCCESS' FROM dbos.workflow_status WHERE workflow_uuid = %s"
        return bool(watch.execute(query, [wanted]).fetchone()[0])

    client.serve(start, start_together, finished)


if __name__ == "__main__":
    {"worker": worker, "client": serve, "migrate": lambda: DBOS.migrate(URL)}[sys.argv[1]]()

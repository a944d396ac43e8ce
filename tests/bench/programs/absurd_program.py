"""absurd, as its own documentation would have it: `absurd_program.py worker|client|migrate`."""

import json
import os
import sys
import threading
import time

import client
import ledger
import psycopg
from absurd_sdk import Absurd

URL = os.environ["BENCH_URL"]
SETTINGS = json.loads(os.environ["BENCH_SETTINGS"])
QUEUE = "bench"


def add(ctx, n: int) -> int:
    return ctx.step("add", lambda: n + 1)


def bench3(params, ctx) -> int:
    return add(ctx, add(ctx, add(ctx, params["n"])))


def bench1000(params, ctx) -> int:
    n = params["n"]

    def first() -> int:
        ledger.note("begin", f"steps-{n}", str(n))
        return n + 1

    value = ctx.step("add", first)
    for _ in range(999):
        value = add(ctx, value)
    return value


def hold(params, ctx) -> str:
    for step in "abc":
        ctx.step(step, lambda step=step: ledger.short(str(params["n"]), step))
    return ctx.step("d", lambda: ledger.long(str(params["n"]), "d"))


def chain(params, ctx) -> str:
    for step in "abcd":
        ctx.step(step, lambda step=step: ledger.short(str(params["n"]), step, 0.02))
    return str(params["n"])


def connected() -> Absurd:
    app = Absurd(URL, queue_name=QUEUE)
    for flow in (bench3, bench1000, hold, chain):
        app.register_task(flow.__name__)(flow)
    return app


def worker() -> None:
    """One worker of absurd is one connection; `clients` of them share this process, each in a thread."""

    def work() -> None:
        connected().start_worker(
            claim_timeout=SETTINGS["claim_timeout"],
            concurrency=SETTINGS["concurrency"],
            batch_size=SETTINGS["batch"],
            poll_interval=SETTINGS["polling"],
        )

    threads = [threading.Thread(target=work) for _ in range(SETTINGS["clients"])]
    for thread in threads:
        thread.start()
    print(json.dumps({"ready": time.time()}), flush=True)
    for thread in threads:
        thread.join()


def serve() -> None:
    app = connected()
    crowd = psycopg.connect(URL)
    bulk = Absurd(crowd, queue_name=QUEUE)
    watch = psycopg.connect(URL, autocommit=True)

    def start(flow: str, n: int) -> str:
        return str(app.spawn(flow, {"n": n})["task_id"])

    def start_together(flow: str, count: int) -> float:
        for n in range(count):
            bulk.spawn(flow, {"n": n}, queue=QUEUE)
        released = time.time()
        crowd.commit()
        return released

    def finished(wanted: str) -> bool:
        query = f"SELECT state = 'completed' FROM absurd.t_{QUEUE} WHERE task_id = %s"
        return bool(watch.execute(query, [wanted]).fetchone()[0])

    client.serve(start, start_together, finished)


def migrate() -> None:
    """The schema comes with its command line tool; `absurdctl init` would pipe the same text into psql."""
    import absurdctl

    with psycopg.connect(URL, autocommit=True) as connection:
        connection.execute(absurdctl.BUNDLED_SCHEMA_SQL)
    Absurd(URL).create_queue(QUEUE)


if __name__ == "__main__":
    {"worker": worker, "client": serve, "migrate": migrate}[sys.argv[1]]()

"""Rekindle beside DBOS and absurd: one run, one machine, one server, the same work.

    make bench                                     everything, three rounds
    .venv/bin/python -m tests.bench drain latency  some rows
    .venv/bin/python -m tests.bench --only rekindle --rounds 1

In the order in which a run passes through them:

    __main__        reads what is asked
    install         the peers, from PyPI, each in its own virtual environment under the data directory
    server          one Postgres, fsync on, a database for each peer, fresh for each measurement
    processes       starting programs, talking to them, killing them; nothing is left behind
    peer            what the bench asks of every engine; rekindle_peer, dbos_peer, absurd_peer answer
    rounds          the engines take turns; quiet waits until nobody else uses the machine
    programs/       what runs inside each environment: the workflows, a worker, a client, the ledger
    rekindle_flows  Rekindle's workflows, the same ones
    measure         the rows: what is done, and from when to when the clock runs
    bars            what Rekindle must reach (design, section 6)
    table           the figures side by side
    report          the table, the settings, the JSON file, the exit status

No timing here decides a test. This is a benchmark; a missed bar is its exit status.
"""

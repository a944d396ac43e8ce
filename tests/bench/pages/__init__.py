"""Every page and poll at 1,000 and at 1,000,000 workflows: what the size of the tables costs an operator.

    make bench-pages                                        everything; the first run fills the databases
    .venv/bin/python -m tests.bench.pages overview list     some groups
    .venv/bin/python -m tests.bench.pages --refill          throw the kept databases away first

In the order in which a run passes through them:

    __main__   reads what is asked
    world      the two sizes, and how their workflows are spread over names and states
    sheets     COPY: lines of text become rows
    stories    each workflow's row, its steps, its diary and its recovery
    around     what surrounds them: workers, policies, duties, alerts, the audit, people
    fill       a database of one size, kept until the schema changes or a day has passed
    homes      one process, two databases, taking turns; while they are measured they stay alive
    asks       what is asked for: pages, polls, charts, exports, the admin; commands and duties
    measure    how long it took, how many queries it took
    report     the rules, the table, what is missed, the exit status

No timing here decides a test. This is a benchmark; a missed bar is its exit status.
"""

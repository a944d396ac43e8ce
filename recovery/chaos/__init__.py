"""`manage.py chaos`: kill at random while workflows run, then prove from outside that nothing was lost.

In the order of an hour of chaos: `shapes` says what is started and what must come of it, `flows` are the definitions
(known only to the workers that chaos starts), `crew` starts those workers and ends them whatever happens, `blows` are
the ways to hurt them, `ledger` is the file outside the database to which every body writes, `verdicts` reads the
database and the ledger and names whoever broke a promise. `command` runs it all.
"""

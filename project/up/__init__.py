"""`manage.py up`: everything in one terminal, gone again with Ctrl-C.

In the order in which they are used:

    bell        the signals that mean "stop"
    voice       what the person at the terminal reads
    prepare     database, tables, static files, people, demo
    address     the port, held by us so that the web process can come and go
    life        one life of a child process
    children    web, scheduler, worker (and the demo's trickle): start, restart, stop
    run         puts them together; its demo lets people kill workers, `project/descent.py` says which
"""

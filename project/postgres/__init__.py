"""A PostgreSQL that belongs to a directory and lives exactly as long as somebody uses it.

Whoever needs the database holds a shared lock on the directory's `users` file; the kernel lets go of it when
the process ends, however it ends. A small keeper runs the server, starts it again should it die, and stops it
as soon as it can have that lock for itself. So nothing is counted, nothing is left behind after `kill -9`, and
nobody has to say goodbye. The server listens on a Unix socket in a directory only its owner can enter: two
checkouts never meet, and the address follows from the directory alone.

In the order in which a start passes through them:

    use         ensure, leave, stop: what the rest of the project calls
    home        where everything lies inside the directory, and the address
    locks       the three file locks
    keeper      the process that starts, watches and stops the server
    binaries    which PostgreSQL
    account     as whom: it refuses to run as root
    cluster     make the files, clear up after a crash, start, stop
"""

from project.postgres.home import Home
from project.postgres.trouble import NoPostgres
from project.postgres.use import ensure, is_kept, leave, stop, url

__all__ = ["Home", "NoPostgres", "ensure", "is_kept", "leave", "stop", "url"]

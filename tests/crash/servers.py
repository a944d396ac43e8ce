"""Servers that a test may kill, freeze or promote: copies of the one that belongs to the run."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from django.conf import settings
from django.db import connection, connections

from project.postgres import account, binaries, cluster
from project.postgres.home import DATABASE, PORT, Home
from workflows import notify


class Server:
    """A copy of another server's files, taken while that one runs; with `follows` a streaming replica of it."""

    def __init__(self, directory: Path, of: Home, *, follows: bool = False) -> None:
        self.home = Home.at(directory)
        self.home.make()
        command = [*account.prefix(), str(binaries.find() / "pg_basebackup"), "-h", str(of.socket.parent)]
        command += ["-p", str(PORT), "-U", DATABASE, "-D", str(self.home.cluster), "-c", "fast", "--no-sync"]
        subprocess.run([*command, *["-R"] * follows], cwd="/", check=True)
        self.start()

    def start(self) -> None:
        self.process = cluster.start(self.home, fsync=False)
        cluster.wait_until_ready(self.home, self.process)

    def stop(self) -> None:
        connections.close_all()
        cluster.stop(self.process)

    def crash(self) -> None:
        """All its processes at once, without a word to anybody."""
        connections.close_all()
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def ask(self, question: str) -> Any:
        with psycopg.connect(self.home.url, autocommit=True) as asking:
            answer = asking.execute(question)
            row = answer.fetchone() if answer.description else None
            return row and row[0]

    def _signal(self, sign: signal.Signals) -> None:
        for pid in cluster._processes(self.home):
            os.kill(pid, sign)


@contextmanager
def instead(*servers: Server) -> Iterator[str]:
    """This process, and whoever is given the address, finds its database on whichever of these servers takes writes."""
    at, before = connection.settings_dict, dict(connection.settings_dict)
    hosts, ports = ",".join(str(one.home.socket.parent) for one in servers), ",".join([str(PORT)] * len(servers))
    _let_go()
    options = {"target_session_attrs": "read-write"}
    at |= {"HOST": hosts, "PORT": ports, "OPTIONS": at["OPTIONS"] | options}
    try:
        yield f"postgresql://{at['USER']}@/{at['NAME']}?host={quote(hosts)}&port={ports}&target_session_attrs=read-write"
    finally:
        _let_go()
        at |= before


def copy_of_the_runs(directory: Path) -> Server:
    return Server(directory, Home.at(settings.DATA_DIR))


def _let_go() -> None:
    notify.rest()
    connections.close_all()

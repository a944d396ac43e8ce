"""A worker's hands without its loop: claim and journal on real connections, steered by the test."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from workflows.claiming import Claimer
from workflows.connections import connect_engine
from workflows.definitions import discover
from workflows.held import Held, Recorded
from workflows.journal import GroupJournal
from workflows.models import Worker


@contextmanager
def hands() -> Iterator[Claimer]:
    """A registered worker that can claim; its journal runs."""
    worker = Worker.objects.create(host="test", pid=os.getpid(), ended_why="")
    journal = GroupJournal(worker.pk)
    journal.start()
    connection = connect_engine("rekindle test", by_key=True)
    try:
        yield Claimer(connection, worker.pk, journal, discover())
    finally:
        journal.close()
        journal.join(10)
        connection.close()


def done(held: Held, name: str, path: str = ".") -> Recorded:
    """A step as the run would hand it to the journal: just ended."""
    step = Recorded(path, len(held.paths[path]), name, status="done", attempt=1)
    held.paths[path].append(step)
    return step

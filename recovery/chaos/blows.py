"""The ways to hurt a crew, one struck at random.

The processes that run one workflow alone are not struck on purpose: whatever dies four times in a row in the same step
is given up, as promised, and then nobody could tell the innocent from the poison.
"""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable

from django.db import connections

from workflows.conf import settings

from ..sweep import sweep_now
from .crew import PACE, Crew

FROZEN_FOR = float(PACE["REKINDLE_STALE_AFTER"]) + 2
TERMINATE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'rekindle %%' AND pid <> pg_backend_pid()
ORDER BY md5(pid || %s) LIMIT %s
"""


class Blows:
    def __init__(self, crew: Crew, chance: random.Random) -> None:
        self.crew, self.chance = crew, chance
        self.struck: Counter[str] = Counter()
        self._frozen: dict[int, float] = {}  # pid -> when it is woken
        self._sweeps: list[threading.Thread] = []
        self._kinds: dict[str, tuple[int, Callable[[], bool]]] = {
            "worker killed": (6, lambda: self._hit_child(signal.SIGKILL)),
            "supervisor killed": (1, lambda: self._hit_supervisor(signal.SIGKILL)),
            "deploy": (2, lambda: self._hit_supervisor(signal.SIGTERM)),
            "worker frozen": (2, self._freeze),
            "connections cut": (3, self._cut),
            "two sweeps at once": (2, self._sweep_twice),
        }

    def strike(self) -> None:
        names = list(self._kinds)
        name = self.chance.choices(names, [self._kinds[name][0] for name in names])[0]
        self.struck[name] += self._kinds[name][1]()

    def wake(self, *, everybody: bool = False) -> None:
        """Let the frozen go on once their time has passed: as zombies, if they were found in the meantime."""
        for pid, until in list(self._frozen.items()):
            if everybody or time.monotonic() >= until:
                del self._frozen[pid]
                _send(pid, signal.SIGCONT)

    def rest(self) -> None:
        self.wake(everybody=True)
        for sweep in self._sweeps:
            sweep.join(60)

    def _hit_child(self, number: signal.Signals) -> bool:
        return bool(children := self.crew.children()) and _send(self.chance.choice(children).pid, number)

    def _hit_supervisor(self, number: signal.Signals) -> bool:
        return bool(living := self.crew.living()) and _send(self.chance.choice(living).pid, number)

    def _freeze(self) -> bool:
        children = [child for child in self.crew.children() if child.pid not in self._frozen]
        if not children:
            return False
        pid = self.chance.choice(children).pid
        self._frozen[pid] = time.monotonic() + FROZEN_FOR
        return _send(pid, signal.SIGSTOP)

    def _cut(self) -> bool:
        with connections[settings().database].cursor() as cursor:
            cursor.execute(TERMINATE, [str(self.chance.random()), self.chance.randint(1, 4)])
            return bool(cursor.fetchall())

    def _sweep_twice(self) -> bool:
        for _ in range(2):
            self._sweeps.append(threading.Thread(target=_sweep))
            self._sweeps[-1].start()
        return True


def _sweep() -> None:
    try:
        sweep_now("operator")
    finally:
        connections.close_all()


def _send(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True

"""Programs the bench starts: each in a session of its own, spoken to in lines of JSON, killed by that session."""

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from project.kin import dying_with_its_parent

_alive: list["Program"] = []


class Silent(Exception):
    """A program did not say or do in time what was asked of it."""


class Program:
    """One child and whatever it starts itself. Dies with the bench, even when the bench is killed."""

    def __init__(self, command: list[str], env: dict[str, str], log: Path, cwd: Path) -> None:
        self.log = log
        self.started = time.time()
        self.up = self.started
        with log.open("ab") as errors:
            self._popen = subprocess.Popen(
                [*dying_with_its_parent("KILL"), *command],
                env=env,
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self.pid = self._popen.pid
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        _alive.append(self)

    def _read(self) -> None:
        for line in self._popen.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def hear(self, patience: float = 60) -> dict[str, Any]:
        """The next line of JSON; other lines are passed over."""
        deadline = time.monotonic() + patience
        while True:
            try:
                line = self._lines.get(timeout=max(0.001, deadline - time.monotonic()))
            except queue.Empty:
                raise Silent(f"{self} said nothing for {patience:.0f} s") from None
            if line is None:
                raise Silent(f"{self} ended; its last words are in {self.log}:\n{self.last_words()}")
            if line.startswith("{"):
                return json.loads(line)

    def ask(self, verb: str, patience: float = 120, **arguments: Any) -> dict[str, Any]:
        self._popen.stdin.write(json.dumps({"verb": verb} | arguments) + "\n")
        self._popen.stdin.flush()
        return self.hear(patience)

    def finish(self, patience: float = 120) -> None:
        """Wait until it ends by itself, and well."""
        try:
            status = self._popen.wait(patience)
        except subprocess.TimeoutExpired:
            raise Silent(f"{self} did not end within {patience:.0f} s") from None
        if status:
            raise Silent(f"{self} ended with {status}:\n{self.last_words()}")

    @property
    def ended(self) -> bool:
        return self._popen.poll() is not None

    def family(self) -> list[int]:
        """Every process of this program's session: itself and what it started."""
        return [pid for pid in _pids() if _session(pid) == self.pid]

    def kill(self) -> float:
        """SIGKILL for the whole session; the moment just before it."""
        moment = time.time()
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        for pid in self.family():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self._popen.wait(10)
        if self in _alive:
            _alive.remove(self)
        return moment

    def last_words(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])

    def __str__(self) -> str:
        return f"{self._popen.args[-1]} (pid {self.pid})"

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def kill_all() -> None:
    """Whatever is still there when a measurement ends or fails."""
    for program in list(_alive):
        program.kill()


def died() -> list[Program]:
    """Programs that ended although nobody killed them."""
    return [program for program in _alive if program.ended]


def until(
    true: Callable[[], bool], patience: float, what: str, every: float = 0.02, alive: Program | None = None
) -> float:
    """Look again and again; the moment it was seen, or Silent when patience or that program ends."""
    deadline = time.monotonic() + patience
    while not true():
        if alive and alive.ended:
            raise Silent(f"{alive} ended:\n{alive.last_words()}")
        if time.monotonic() > deadline:
            raise Silent(f"after {patience:.0f} s still waiting: {what}")
        time.sleep(every)
    return time.time()


def weigh(pid: int) -> dict[str, float]:
    """Resident and proportional megabytes of one process."""
    sizes = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        key, value, *_ = line.split()
        sizes[key.rstrip(":")] = int(value) / 1024
    return {"rss": sizes["Rss"], "pss": sizes["Pss"]}


def _pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None

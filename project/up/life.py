"""One life of a child process, from its start to its last words."""

import os
import signal
import subprocess
import time
from contextlib import suppress

from project.kin import dying_with_its_parent
from project.up.voice import relay

LONGEST_LINE = 10_000


class Life:
    """It leads a group of its own, so that exactly one signal reaches it, and only from us; whatever it leaves
    behind is found in that group. If we are killed, Linux tells it to stop."""

    def __init__(self, name: str, command: list[str], keeps: tuple[int, ...]) -> None:
        self.name = name
        self.began = time.monotonic()
        self._line = b""
        self._ear, mouth = os.pipe()
        os.set_blocking(self._ear, False)
        self._process = subprocess.Popen(
            [*dying_with_its_parent("TERM"), *command],
            stdin=subprocess.DEVNULL,
            stdout=mouth,
            stderr=mouth,
            pass_fds=keeps,
            process_group=0,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        os.close(mouth)

    def fileno(self) -> int:
        """So that a selector can wait for what it says."""
        return self._ear

    def seconds(self) -> float:
        return time.monotonic() - self.began

    def ended(self) -> str | None:
        """How, once it has; nothing while it lives."""
        code = self._process.poll()
        if code is None:
            return None
        return f"exit code {code}" if code >= 0 else f"signal {-code}"

    def ask_to_stop(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def relay(self) -> bool:
        """Pass on what it has just said. False: nothing now, or nothing ever more."""
        try:
            said = os.read(self._ear, 65536)
        except BlockingIOError:
            return False
        *lines, self._line = (self._line + said).split(b"\n")
        if len(self._line) > LONGEST_LINE or (self._line and not said):
            lines, self._line = [*lines, self._line], b""
        for line in lines:
            relay(self.name, line.decode(errors="replace"))
        return bool(said)

    def bury(self) -> None:
        """End what it started and did not end itself, and read its last words."""
        self.kill()
        while self.relay():
            pass
        os.close(self._ear)

"""The children: whoever stops is started again, a little later each time; in the end all are asked to stop."""

import selectors
import time
from collections.abc import Callable
from dataclasses import dataclass

from project.up.life import Life
from project.up.voice import relay

SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 30.0


@dataclass(eq=False)
class Child:
    """A command that should be running."""

    name: str
    command: list[str]
    keeps: tuple[int, ...] = ()  # open files it inherits
    life: Life | None = None
    due: float = 0.0  # when to start it, by the monotonic clock
    pause: float = SHORTEST_PAUSE


class Children:
    def __init__(self, children: list[Child]) -> None:
        self._children = children
        self._ears = selectors.DefaultSelector()

    def look(self, seconds: float) -> None:
        """Start who is due, pass on what they say for at most so long, and see who has stopped."""
        for child in self._children:
            if child.life is None and time.monotonic() >= child.due:
                child.life = Life(child.name, child.command, child.keeps)
                self._ears.register(child.life, selectors.EVENT_READ)
        self._listen(seconds)
        for child, life in self._alive():
            if how := life.ended():
                self._bury(child, life)
                if life.seconds() > LONGEST_PAUSE:
                    child.pause = SHORTEST_PAUSE
                relay("up", f"The {child.name} stopped ({how}); starting it again in {child.pause:g} s.")
                child.due = time.monotonic() + child.pause
                child.pause = min(child.pause * 2, LONGEST_PAUSE)

    def stop(self, grace: float, hurry: Callable[[], bool]) -> None:
        """Ask each once; who has not gone when the grace is over, or when somebody is in a hurry, is killed."""
        for _, life in self._alive():
            life.ask_to_stop()
        until = time.monotonic() + grace
        while alive := self._alive():
            for child, life in alive:
                if life.ended():
                    self._bury(child, life)
                elif time.monotonic() > until or hurry():
                    relay("up", f"The {child.name} does not stop; ending it.")
                    life.kill()
            self._listen(0.05)

    def _alive(self) -> list[tuple[Child, Life]]:
        return [(child, child.life) for child in self._children if child.life is not None]

    def _bury(self, child: Child, life: Life) -> None:
        self._forget(life)
        life.bury()
        child.life = None

    def _listen(self, seconds: float) -> None:
        """One read of each who has something to say: a chatterbox cannot hold us up."""
        if not self._ears.get_map():
            time.sleep(seconds)
        for key, _ in self._ears.select(seconds):
            if isinstance(key.fileobj, Life) and not key.fileobj.relay():
                self._forget(key.fileobj)  # it closed its mouth, but lives

    def _forget(self, life: Life) -> None:
        if life in {key.fileobj for key in self._ears.get_map().values()}:
            self._ears.unregister(life)

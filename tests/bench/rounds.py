"""Round by round, row by row, the engines take turns: whatever the machine does, it does to all of them."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from math import isinf

from . import measure, processes, quiet
from .bars import Samples
from .peer import Peer


@dataclass
class Outcome:
    samples: Samples
    troubles: list[str] = field(default_factory=list)
    loud: int = 0  # measurements before which somebody else used the machine


def run(peers: list[Peer], rows: list[str], rounds: int) -> Outcome:
    outcome = Outcome({peer.name: defaultdict(list) for peer in peers})
    for peer in peers:
        peer.build()
    for number in range(1, rounds + 1):
        for act in (act for row in rows for act in measure.ROWS[row]):
            for peer in peers:
                for _ in range(peer.crashes if act in (measure.takeover, measure.restart) else 1):
                    if not _gave_up(outcome, act, peer):
                        _turn(outcome, act, peer, f"round {number}/{rounds}")
    return outcome


def _turn(outcome: Outcome, act: Callable[[Peer], measure.Figures], peer: Peer, when: str) -> None:
    outcome.loud += quiet.wait() > quiet.BUSY
    print(f"{when}  {act.__name__:9}{peer.label:9}", end="", flush=True)
    try:
        figures = _measured(act, peer)
    except Exception as trouble:  # the other rows are still worth having
        outcome.troubles.append(f"{act.__name__}, {peer.label}, {when}: {type(trouble).__name__}: {trouble}")
        print(f"FAILED: {str(trouble).splitlines()[0] if str(trouble) else trouble!r}", flush=True)
        return
    for figure, value in figures.items():
        outcome.samples[peer.name][figure].append(value)
    print("  ".join(f"{figure} {value:,.4g}" for figure, value in figures.items()), flush=True)


def _measured(act: Callable[[Peer], measure.Figures], peer: Peer) -> measure.Figures:
    """One measurement. Figures of a run in which somebody died unasked are worth nothing."""
    try:
        figures = act(peer)
        if died := processes.died():
            raise processes.Silent(f"{died[0]} ended by itself:\n{died[0].last_words()}")
        return figures
    finally:
        processes.kill_all()


def _gave_up(outcome: Outcome, act: Callable[[Peer], measure.Figures], peer: Peer) -> bool:
    """It did not come back once within our patience; waiting again tells nothing new."""
    return any(isinf(value) for value in outcome.samples[peer.name].get(act.__name__, []))

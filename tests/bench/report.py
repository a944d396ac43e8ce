"""The table, the settings behind it, the same as JSON, and the exit status."""

import json
import os
import platform
from datetime import UTC, datetime
from math import isinf
from pathlib import Path
from typing import Any

from . import bars, measure, table
from .peer import Peer
from .rounds import Outcome


def show(outcome: Outcome, peers: list[Peer], rows: list[str], patience: float) -> int:
    """Print what was found; 1 if a bar was missed or a measurement failed."""
    engines = [peer.name for peer in peers]
    print("\n" + table.draw(outcome.samples, rows, engines, patience) + "\n")
    for peer in peers:
        print(
            f"{peer.label}: "
            + "; ".join(f"{', '.join(acts)}: {words}" for words, acts in _settings(peer, rows).items())
        )
    if outcome.loud:
        print(f"Before {outcome.loud} measurements the machine was busy with something else: figures may be low.")
    for trouble in outcome.troubles:
        print(f"\nFailed: {trouble}")
    missed = [row for row in bars.ROWS if row.group in rows and row.reached(outcome.samples) is False]
    if "rekindle" in engines:
        titles = "; ".join(row.title.strip() for row in missed)
        print(f"\nMissed: {titles}." if missed else "\nEvery bar that could be judged is reached.")
        return 1 if missed or outcome.troubles else 0
    return 1 if outcome.troubles else 0


def write(outcome: Outcome, peers: list[Peer], rows: list[str], file: Path, **about: Any) -> None:
    samples = {
        engine: {
            figure: [None if isinf(value) else round(value, 4) for value in values] for figure, values in found.items()
        }
        for engine, found in outcome.samples.items()
    }
    reached = {row.title.strip(): row.reached(outcome.samples) for row in bars.ROWS if row.group in rows and row.asks}
    content = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()},
        **about,
        "samples": samples,  # null: not within the patience
        "reached": reached,
        "settings": {peer.name: {act: peer.settings(act) for act in _acts(rows)} for peer in peers},
        "troubles": outcome.troubles,
        "busy_before": outcome.loud,
    }
    file.write_text(json.dumps(content, indent=1) + "\n")


def _settings(peer: Peer, rows: list[str]) -> dict[str, list[str]]:
    """Each set of settings, and the measurements that used it."""
    found: dict[str, list[str]] = {}
    for act in _acts(rows):
        words = " ".join(f"{key}={value}" for key, value in sorted(peer.settings(act).items()))
        found.setdefault(words, []).append(act)
    return found


def _acts(rows: list[str]) -> list[str]:
    return [act.__name__ for row in rows for act in measure.ROWS[row]]

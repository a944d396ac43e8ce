"""`python -m tests.bench [rows] [--rounds N] [--only ENGINE] [--long]`: measure, show, exit 1 if a bar is missed."""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from . import install, measure, processes, report, rounds, server
from .absurd_peer import Absurd
from .dbos_peer import Dbos
from .peer import ROOT, Peer
from .rekindle_peer import Rekindle

ENGINES: dict[str, type[Peer]] = {"rekindle": Rekindle, "dbos": Dbos, "absurd": Absurd}


def main() -> int:
    asked = read_arguments()
    begun = time.monotonic()
    data = Path(os.environ.get("REKINDLE_DATA") or ROOT / ".data").absolute() / "bench"
    data.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    chosen = {name: kind for name, kind in ENGINES.items() if not asked.only or name in asked.only}
    pythons = {name: install.install(name, kind.packages, data) for name, kind in chosen.items() if kind.packages}
    versions = {name: install.version(python, chosen[name].packages[0]) for name, python in pythons.items()}
    with server.running(data, asked.server) as postgres:
        about = {"postgres": postgres.version, "versions": versions, "rounds": asked.rounds, "patience": asked.patience}
        print(
            f"PostgreSQL {postgres.version}, fsync on; {os.cpu_count()} cores; {asked.rounds} rounds; {versions or ''}"
        )
        peers = [kind(postgres, data, pythons.get(name), asked.patience) for name, kind in chosen.items()]
        try:
            outcome = rounds.run(peers, asked.rows, asked.rounds)
        finally:
            processes.kill_all()
            for peer in peers:
                peer.drop()
    status = report.show(outcome, peers, asked.rows, asked.patience)
    report.write(outcome, peers, asked.rows, data / "figures.json", **about)
    print(f"Took {time.monotonic() - begun:.0f} s; written to {data / 'figures.json'}")
    return status


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Rekindle beside DBOS and absurd.")
    parser.add_argument("rows", nargs="*", metavar="row", help=f"{', '.join(measure.ROWS)}; all if none is named")
    parser.add_argument("--rounds", type=int, default=3, help="medians over so many rounds (3)")
    parser.add_argument("--only", action="append", choices=list(ENGINES), help="only this engine; may be repeated")
    parser.add_argument("--long", action="store_true", help="wait 150 s for a dead worker's work, not 20")
    parser.add_argument("--server", help="a PostgreSQL to use instead of the embedded one: a superuser's URL")
    asked = parser.parse_args()
    if unknown := [row for row in asked.rows if row not in measure.ROWS]:
        parser.error(f"no row is called {', '.join(unknown)}; there are {', '.join(measure.ROWS)}")
    asked.rows = asked.rows or list(measure.ROWS)
    asked.patience = 150.0 if asked.long else 20.0
    return asked


if __name__ == "__main__":
    sys.exit(main())

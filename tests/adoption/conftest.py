"""The bakery, a project that is not ours: an environment, a database and processes of its own.

It exists before Rekindle does, with people, pages and schedules. Then a wheel is built from this repository and the lines of
docs/install.md are followed to the letter. Nothing of the repository can be imported there but what the wheel brought.
"""

import json
import os
import re
import shutil
import signal
import site
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import venv
from collections.abc import Callable, Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import psycopg
import pytest

from tests.crash.conftest import FAST, ROOT, until

EMAIL = "brot.und.semmel@bakery.example"
SOMEBODY = "a" * 60 + "@" + "b" * 60 + "." + "c" * 60 + "." + "d" * 58 + ".example"  # as long as an e-mail may be
PASSWORD = "sourdough-and-salt"
LEFT_OUT = ("PYTHONPATH", "DATABASE_URL", "DJANGO_SETTINGS_MODULE")


def five_lines() -> dict[str, list[str]]:
    """What docs/install.md tells people to add, by the file that it goes into; what they type is under `shell`."""
    text = (ROOT / "docs/install.md").read_text()
    section = re.split(r"^## ", text, flags=re.MULTILINE)[1].partition("Leave out")[0]
    found: dict[str, list[str]] = {"shell": []}
    for kind, block in re.findall(r"^```(\w+)\n(.*?)^```", section, re.MULTILINE | re.DOTALL):
        head, *lines = block.splitlines()
        if kind == "sh":
            found["shell"] += [head, *lines]
        else:
            found[head.removeprefix("# at the end of ")] = lines
    return found


def leave_out(text: str, line: str) -> str:
    """The line without what the file has already, as the page says."""
    have = set(re.findall(r'^    ("[\w.]+"),$', text, re.MULTILINE))
    return re.sub(r'("[\w.]+"), ', lambda app: "" if app[1] in have else app[0], line)


class Bakery:
    """The foreign project, in a directory of its own."""

    def __init__(self, home: Path, address: str) -> None:
        self.home, self.address = home, address
        self.python = home / "env/bin/python"
        self.processes: list[subprocess.Popen[bytes]] = []
        at = urlsplit(address)
        where = {key: values[0] for key, values in parse_qs(at.query).items()}
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(LEFT_OUT)}
        self.environment = {name: value for name, value in self.environment.items() if not name.startswith("REKINDLE")}
        self.environment |= {name: value for name, value in FAST.items() if name != "REKINDLE_MODULES"}
        self.environment |= {
            "BAKERY_DATABASE": at.path[1:],
            "BAKERY_USER": at.username or "",
            "BAKERY_HOST": where.get("host", at.hostname or ""),
            "BAKERY_PORT": where.get("port", str(at.port or "")),
            "BAKERY_STATIC": str(home / "collected"),
            "BAKERY_LEDGER": str(home / "ledger"),
            "BAKERY_DOOR": str(home / "door"),
        }

    # -- commands ---------------------------------------------------------------------------------------------------

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.python), *words]
        return subprocess.run(
            command, cwd=self.home / "project", env=self.environment | more, capture_output=True, text=True, timeout=120
        )

    def manage(self, *words: str, **more: str) -> str:
        done = self.run("-W", "error::RuntimeWarning", "manage.py", *words, **more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def ask(self, code: str) -> Any:
        """What a line of Python finds out there, once Django is set up."""
        done = self.run("-c", f"import django, json; django.setup(); {code}", DJANGO_SETTINGS_MODULE="bakery.settings")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def query(self, sql: str, *given: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.address, autocommit=True) as connection:
            return connection.execute(sql, given).fetchall()

    # -- processes --------------------------------------------------------------------------------------------------

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        log = (self.home / "log").open("ab")
        process = subprocess.Popen(
            [str(self.python), *command],
            cwd=self.home / "project",
            env=self.environment,
            start_new_session=True,
            stdout=log,
            stderr=log,
        )
        self.processes.append(process)
        return process

    def work(self) -> subprocess.Popen[bytes]:
        def count() -> int:
            return int(self.query("SELECT count(*) FROM rekindle_worker")[0][0])

        before = count()
        worker = self.start("manage.py", "rekindle", "work", "--processes", "1", "--concurrency", "4")
        until(lambda: count() > before, "the bakery's worker is up")
        return worker

    def end(self) -> None:
        for process in self.processes:
            kill(process)

    def ledger(self) -> list[str]:
        path = self.home / "ledger"
        return path.read_text().split() if path.exists() else []


def kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


class Stay(urllib.request.HTTPRedirectHandler):
    """Shows where one is sent instead of going there."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Answer:
    def __init__(self, given: Any) -> None:
        self.status, self.headers = given.status, given.headers
        self.body = given.read()

    @property
    def text(self) -> str:
        return str(self.body.decode())


class Visitor:
    """A browser without scripts: keeps cookies, follows nothing."""

    def __init__(self, server: str) -> None:
        self.server, self.cookies = server, CookieJar()
        self.opener = urllib.request.build_opener(Stay, urllib.request.HTTPCookieProcessor(self.cookies))

    def get(self, path: str, **headers: str) -> Answer:
        return self._open(urllib.request.Request(self.server + path, headers=headers))

    def post(self, path: str, **fields: str) -> Answer:
        token = next((cookie.value for cookie in self.cookies if cookie.name == "csrftoken"), "")
        data = urlencode({"csrfmiddlewaretoken": token or ""} | fields).encode()
        return self._open(urllib.request.Request(self.server + path, data))

    def enter(self, email: str) -> "Visitor":
        self.get("/people/enter/")
        assert self.post("/people/enter/", username=email, password=PASSWORD).status == 302
        return self

    def _open(self, request: urllib.request.Request) -> Answer:
        try:
            with self.opener.open(request, timeout=60) as answer:
                return Answer(answer)
        except urllib.error.HTTPError as answer:
            return Answer(answer)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return into


@pytest.fixture(scope="session")
def bakery(embedded_postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bakery]:
    """Before Rekindle: people, a schedule, and pages."""
    home = tmp_path_factory.mktemp("bakery")
    with psycopg.connect(embedded_postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE bakery")
    shutil.copytree(ROOT / "tests/adoption/host", home / "project")
    venv.create(home / "env", symlinks=True)
    (shared,) = (path for path in site.getsitepackages() if path.endswith("site-packages"))
    (own,) = (home / "env/lib").glob("python*/site-packages")
    (own / "what-every-environment-has.pth").write_text(f"{shared}\n")  # Django and the rest, without a network
    found = Bakery(home, urlsplit(embedded_postgres)._replace(path="/bakery").geturl())
    found.manage("migrate", "--verbosity", "0")
    found.ask(f"from people.models import Baker; Baker.objects.create_superuser({EMAIL!r}, {PASSWORD!r}); print(1)")
    found.ask(
        "from django_q.models import Schedule; from datetime import datetime, UTC; when = datetime(2099, 1, 1, tzinfo=UTC);"
        "[Schedule.objects.create(name=name, func='shop.tasks.count_the_flour', schedule_type='D', next_run=when)"
        " for name in ('flour', 'rekindled oven', 'rekindle', None)]; print(1)"
    )
    yield found
    found.end()


@pytest.fixture(scope="session")
def before(bakery: Bakery) -> dict[str, Any]:
    """What has to be the same when Rekindle has moved in."""
    return {"schedules": own_schedules(bakery), "models": bakery.manage("makemigrations", "--check", "--dry-run")}


def own_schedules(bakery: Bakery) -> list[tuple[Any, ...]]:
    wanted = "name IS NULL OR name NOT LIKE 'rekindle:%%'"
    return bakery.query(f"SELECT * FROM django_q_schedule WHERE {wanted} ORDER BY id")


@pytest.fixture(scope="session")
def adopted(bakery: Bakery, before: dict[str, Any], wheel: Path) -> Bakery:
    """After it: the five lines, each done as the page says."""
    lines = five_lines()
    install, migrate = lines.pop("shell")
    done = subprocess.run(
        [
            *(sys.executable, "-m", *install.split()[:1], "--python", str(bakery.python), *install.split()[1:]),
            *("--no-index", "--find-links", str(wheel), "--disable-pip-version-check"),
        ],
        env=bakery.environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for name, added in lines.items():
        file = bakery.home / "project/bakery" / name
        text = file.read_text()
        file.write_text("\n".join([text, *(leave_out(text, line) for line in added), ""]))
    bakery.manage(*migrate.split()[2:])
    bakery.manage("collectstatic", "--noinput")
    return bakery


@pytest.fixture(scope="session")
def server(adopted: Bakery) -> Iterator[str]:
    """The bakery's own web server: one process, one connection to the database, kept between requests."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    gunicorn = adopted.start("-m", "gunicorn", "bakery.wsgi", "--bind", f"127.0.0.1:{port}", "--workers", "1")
    until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, "the bakery's server listens")
    yield f"http://127.0.0.1:{port}"
    kill(gunicorn)


@pytest.fixture
def visit(server: str) -> Callable[..., Visitor]:
    def enter(email: str = "") -> Visitor:
        return Visitor(server).enter(email) if email else Visitor(server)

    return enter

"""Puts it together: prepare, start, watch until the bell rings, stop in the opposite order."""

import os
import socket
import sys
import time

from django.conf import settings
from django.db import connections

from project import descent, postgres
from project.up import address, prepare
from project.up.bell import Bell, Stopped
from project.up.children import Child, Children
from project.up.voice import relay, say, speak_plainly, step
from workflows import conf

PATIENCE = 30  # for the first answer of the web process
BEYOND_THE_GRACE = 10  # what a worker needs to hand back its work when its grace is over


def run(host: str, port: int, demo: bool) -> None:
    """Returns when everything it started is gone again."""
    speak_plainly()
    bell = Bell()
    listener, children = None, Children([])
    try:
        with bell.may_interrupt():
            passwords = _prepare(demo)
            listener = address.listen(host, port)
        children = Children(_children(listener, demo))
        with step("Web, scheduler and worker"):
            _wait_for_the_web(children, listener, bell)
        _welcome(listener, port, passwords)
        _watch(children, bell)
    except Stopped:
        pass
    finally:
        say("Stopping.")
        if listener is not None:
            listener.close()
        children.stop(conf.settings().grace + BEYOND_THE_GRACE, hurry=lambda: bell.rung > 1)
        if settings.EMBEDDED:
            postgres.leave(settings.DATA_DIR)
        say("Stopped.")


def _prepare(demo: bool) -> dict[str, str]:
    """Returns the passwords of the people it made, if it made any."""
    if settings.EMBEDDED:
        with step(f"PostgreSQL in {os.path.relpath(settings.DATA_DIR)}"):
            postgres.ensure(settings.DATA_DIR)
    with step("Tables"):
        prepare.tables()
    if not settings.AT_HOME:
        with step("Static files"):
            prepare.static_files()
    passwords: dict[str, str] = {}
    if demo:
        with step("People and demo"):
            passwords = prepare.people()
            prepare.demo()
    elif prepare.nobody_is_there():
        python = os.path.relpath(sys.executable)
        say(f"  Nobody can log in yet: make the first user with `{python} manage.py createsuperuser`.")
    connections.close_all()
    return passwords


def _children(listener: socket.socket, demo: bool) -> list[Child]:
    manage = [sys.executable, str(settings.BASE_DIR / "manage.py")]
    web = [sys.executable, "-m", "gunicorn", "project.wsgi", "--bind", f"fd://{listener.fileno()}"]
    web += ["--chdir", str(settings.BASE_DIR), "--worker-class", "gthread", "--workers", "2", "--threads", "8"]
    web += ["--timeout", "60", "--graceful-timeout", "5", "--log-level", "warning", "--no-control-socket"]
    children = [
        Child("web", web, keeps=(listener.fileno(),)),
        Child("scheduler", [*manage, "qcluster"]),
        Child("worker", [*manage, "work", "--processes", "2", "--concurrency", "16"]),
    ]
    if demo:
        descent.tell()
        os.environ.setdefault("REKINDLE_HEARTBEAT", "2")  # so that the pages know to the second when somebody died
        children.append(Child("demo", [*manage, "trickle"]))
    return children


def _wait_for_the_web(children: Children, listener: socket.socket, bell: Bell) -> None:
    """The question waits in the queue of our listener until somebody answers it. Any answer will do."""
    until = time.monotonic() + PATIENCE
    with address.ask(listener) as question:
        while not bell.rung and time.monotonic() < until and not address.answered(question):
            children.look(0.05)


def _welcome(listener: socket.socket, wanted: int, passwords: dict[str, str]) -> None:
    got = listener.getsockname()[1]
    say()
    if wanted not in (0, got):
        say(f"  Port {wanted} is taken; using {got}.")
    say(f"  Rekindle is at {address.url(listener)}")
    for name, password in passwords.items():
        say(f"  {name:8} {password}")
    say("  Ctrl-C stops everything.")
    say()


def _watch(children: Children, bell: Bell) -> None:
    while not bell.rung:
        children.look(0.2)
        if settings.EMBEDDED and not postgres.is_kept(settings.DATA_DIR):
            relay("up", "The keeper of the database is gone; starting it again.")
            with bell.may_interrupt():
                postgres.ensure(settings.DATA_DIR)

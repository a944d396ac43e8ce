"""`doctor`: what is wrong with this installation, one sentence each, and what to do about it. Reads only."""

import time
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import NamedTuple

from django.apps import apps
from django.core.checks import run_checks
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from ..conf import settings
from ..connections import behind_pooler
from .answer import Answer, Options, Verb
from .status import living
from .table import clean

OLDEST_POSTGRES = 15
CLOCKS_APART = 2.0  # seconds
SWEEP = "rekindle:sweep"


class Finding(NamedTuple):
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{clean(self.problem, 400)}\n  → {clean(self.remedy, 400)}"


def add_arguments(parser: ArgumentParser) -> None:
    """None."""


def run(options: Options) -> Answer:
    found = list(examine())
    value = [finding._asdict() for finding in found]
    if not found:
        return Answer(value, "Nothing is wrong.")
    count = "One thing is wrong." if len(found) == 1 else f"{len(found)} things are wrong."
    return Answer(value, "\n".join(map(str, found)), finding=count)


def examine() -> Iterator[Finding]:
    yield from configuration()
    yield from server()
    yield from clocks()
    yield from pooler()
    unapplied = list(migrations())
    yield from unapplied
    if not unapplied:
        yield from crew()
        yield from schedule()


def configuration() -> Iterator[Finding]:
    for message in run_checks(tags=["rekindle"]):
        yield Finding(message.msg, message.hint or "See the settings.")
    heartbeat, stale = settings().heartbeat, settings().stale_after
    if heartbeat < stale < 2 * heartbeat:
        yield Finding(
            f"One late heartbeat (every {heartbeat:g} s) is nearly taken for death (after {stale:g} s).",
            "Make STALE_AFTER at least twice HEARTBEAT, better three times.",
        )


def server() -> Iterator[Finding]:
    engine = connections[settings().database]
    engine.ensure_connection()
    version = getattr(engine, "pg_version", 0) // 10_000
    if version < OLDEST_POSTGRES:
        yield Finding(
            f"The database is PostgreSQL {version}; Rekindle needs {OLDEST_POSTGRES} or newer.", "Upgrade the server."
        )


def clocks() -> Iterator[Finding]:
    with connections[settings().database].cursor() as cursor:
        before = time.time()
        cursor.execute("SELECT EXTRACT(EPOCH FROM clock_timestamp())::float8")
        there = cursor.fetchone()[0]
    apart = (before + time.time()) / 2 - there
    if abs(apart) > CLOCKS_APART:
        way = "ahead of" if apart > 0 else "behind"
        yield Finding(
            f"The clock of this machine is {abs(apart):.1f} s {way} the database's.",
            "Let both follow the same time server; the engine goes by the database's clock, your own code may not.",
        )


def pooler() -> Iterator[Finding]:
    if behind_pooler():
        yield Finding(
            "The database is reached through a transaction pooler, where a worker's session lock means nothing: "
            f"a dead worker is found by its silence alone, after {settings().stale_after:g} s.",
            "Point the engine's database at PostgreSQL itself, or at a pooler in session mode.",
        )


def migrations() -> Iterator[Finding]:
    executor = MigrationExecutor(connections[settings().database])
    leaves = executor.loader.graph.leaf_nodes()
    missing = [f"{migration.app_label}.{migration.name}" for migration, _ in executor.migration_plan(leaves)]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        yield Finding(f"Migrations are not applied: {', '.join(missing[:3])}{more}.", "Run manage.py migrate.")


def crew() -> Iterator[Finding]:
    workers = living()
    if not workers:
        yield Finding("No worker is alive, so nothing runs.", "Start one with manage.py work.")
    for what, remedy in (
        ("version", "Deploy the same Rekindle everywhere and restart the workers."),
        ("release", "Finish the deploy, or restart the workers that still run the old release."),
    ):
        seen = sorted({worker[what] or "none" for worker in workers})
        if len(seen) > 1:
            yield Finding(f"The live workers run different {what}s: {', '.join(seen)}.", remedy)
    stale = settings().stale_after
    for worker in workers:
        if worker["heartbeat_every"] >= stale:
            yield Finding(
                f"Worker {worker['host']}:{worker['pid']} beats every {worker['heartbeat_every']:g} s, "
                f"but here it is taken for dead after {stale:g} s.",
                "Give workers and pages the same HEARTBEAT and STALE_AFTER.",
            )


def schedule() -> Iterator[Finding]:
    if apps.is_installed("django_q") and not apps.get_model("django_q", "Schedule").objects.filter(name=SWEEP).exists():
        yield Finding(
            f"django-q2 has no schedule {SWEEP!r}, so nobody sweeps while no worker lives.",
            "Run manage.py migrate, which puts the schedules right.",
        )


DOCTOR = Verb("say what is wrong with this installation and what to do; exit code 1 if anything is", add_arguments, run)

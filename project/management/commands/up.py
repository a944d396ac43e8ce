import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError

from project.postgres import NoPostgres, locks
from project.up.run import run


class Command(BaseCommand):
    help = (
        "Everything in one terminal: web, scheduler and worker, and a database of its own if DATABASE_URL is not set."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="where to listen (127.0.0.1)")
        parser.add_argument("--port", type=int, default=8000, help="the port, or else the next free one (8000)")
        parser.add_argument("--demo", action="store_true", help="people and demo workflows, also on your own database")

    def handle(self, *args: Any, host: str, port: int, demo: bool, **options: Any) -> None:
        settings.DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
        mine = locks.try_to_take(settings.DATA_DIR / "up.lock", locks.ALONE)
        if mine is None:
            raise CommandError(f"Rekindle is already up in {settings.DATA_DIR}.")
        try:
            run(host, port, demo or settings.EMBEDDED)
        except (NoPostgres, OperationalError, OSError) as trouble:
            raise CommandError(str(trouble).strip()) from trouble
        finally:
            os.close(mine)

import logging
import time
from typing import Any

from django.core.management.base import BaseCommand
from django.db import close_old_connections

EVERY = 2  # seconds

logger = logging.getLogger("rekindle.demo")


class Command(BaseCommand):
    help = "A little work every two seconds, so that the demo's pages have something to show. Run by `up`."

    def handle(self, *args: Any, **options: Any) -> None:
        from project.demo import trickle

        while True:
            try:
                trickle()
            except Exception:
                logger.exception("The demo could not start its work; trying again.")
            close_old_connections()
            time.sleep(EVERY)

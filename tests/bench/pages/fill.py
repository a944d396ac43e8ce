"""A database of one size. It is kept between runs, and filled anew when the schema changed or a day has passed.

What was written then is older now: before each run the minutes since are filled up at the pace of the last hour, and
whoever sleeps goes on sleeping. The counts of minutes, hours and days are made by the duty that makes them everywhere.
"""

import hashlib
import json
import time
from datetime import UTC, datetime, timedelta
from math import ceil
from pathlib import Path

import psycopg
from django.core.management import call_command
from django.utils import timezone

from recovery.models import MetricMinute
from recovery.ranges import LONGEST
from recovery.rollup import roll_up

from ..peer import ROOT
from ..server import Server
from . import around
from .homes import Home
from .stories import Stories
from .world import SPAN, Size

OLDEST = timedelta(days=1)
PACE = 1 / 100_000  # of its workflows a database gains each second
MOST_MORE = 0.02  # of them, however long nobody looked

STILL_ASLEEP = """UPDATE rekindle_workflow SET wake_at = now() + interval '1 minute' + (('x' || right(id::text, 4))::bit(16)::int %% 7200) * interval '1 second'
WHERE wake_at < now() + interval '10 minutes' AND status <> 'queued'"""
STILL_QUEUED = (
    "UPDATE rekindle_workflow SET wake_at = now() - interval '30 seconds' WHERE wake_at < now() AND status = 'queued'"
)
REMEMBERED = """INSERT INTO rekindle_recovery_metricminute (minute, {columns}) SELECT minute - %(ago)s, {columns}
FROM rekindle_recovery_metricminute WHERE grain > 60 AND minute > now() - interval '29 days' AND minute > now() - %(oldest)s + %(ago)s
ON CONFLICT DO NOTHING"""
# Identities were given, not drawn.
NUMBERED = "SELECT setval(pg_get_serial_sequence('rekindle_worker', 'id'), (SELECT max(id) FROM rekindle_worker))"


def ensure(server: Server, size: Size, *, refill: bool) -> Home:
    """A database that is there, up to date, and young enough."""
    home, kept = Home(server, size), _kept(server, size)
    now = datetime.now(UTC)
    then = datetime.fromisoformat(kept["until"]) if kept else now
    if refill or not kept or kept["of"] != _fingerprint() or now - datetime.fromisoformat(kept["from"]) > OLDEST:
        _fill(server, home)
    else:
        _go_on(server, home, then)
    return home


def _fill(server: Server, home: Home) -> None:
    size, url = home.size, home.url
    began = time.monotonic()
    server.create(size.database)
    with home:
        call_command("migrate", verbosity=0)
        now = timezone.now()
        around.workers(url, size, now)
        around.policies()
        around.duties(url, now)
        around.alerts(url, size, now)
        around.audit(url, size, now)
        around.people()
        stories = Stories(url, size)
        stories.write(now - SPAN, now)
        stories.close()
        copied = time.monotonic() - began
        _settle(url)
        roll_up("scheduled task", time.monotonic() + 3600)
        _remember(url)
        server.settle(size.database)
    _keep(server, size, now, now)
    took = time.monotonic() - began
    print(f"Filled {size.workflows:,} workflows in {took:.0f} s, {copied:.0f} s of it COPY.", flush=True)


def _remember(url: str) -> None:
    """Workflows are forgotten after a month, figures after thirteen: the months before were like this one."""
    columns = [field.column for field in MetricMinute._meta.fields if field.column not in ("id", "minute")]
    with psycopg.connect(url, autocommit=True) as connection:
        for month in range(1, ceil(LONGEST / SPAN) + 1):
            connection.execute(REMEMBERED.format(columns=", ".join(columns)), {"ago": month * SPAN, "oldest": LONGEST})


def _go_on(server: Server, home: Home, then: datetime) -> None:
    """Time has passed there too."""
    kept = _kept(server, home.size)
    assert kept
    with home:
        now = timezone.now()
        more = min((now - then).total_seconds() * PACE, MOST_MORE) * home.size.workflows
        if more >= 1:
            stories = Stories(home.url, home.size)
            stories.chance.seed(then.timestamp())
            stories.go_on(then, now, int(more))
            stories.close()
        roll_up("scheduled task", time.monotonic() + 3600)
    _settle(home.url)
    server.settle(home.size.database)
    _keep(server, home.size, datetime.fromisoformat(kept["from"]), now)


def _settle(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in (STILL_ASLEEP.replace("%%", "%"), STILL_QUEUED, NUMBERED, "ANALYZE"):
            connection.execute(statement)


def _kept(server: Server, size: Size) -> dict[str, str] | None:
    """What the database says of itself, in its comment."""
    said = server.ask(
        "postgres",
        f"SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = '{size.database}'",
    )
    return json.loads(str(said)) if said else None


def _keep(server: Server, size: Size, begun: datetime, until: datetime) -> None:
    said = json.dumps({"of": _fingerprint(), "from": begun.isoformat(), "until": until.isoformat()})
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(f"COMMENT ON DATABASE {size.database} IS '{said}'")


def _fingerprint() -> str:
    """Of the schema, and of what fills it."""
    files = [*ROOT.glob("*/migrations/*.py"), *ROOT.glob("*/schema.py"), *Path(__file__).parent.glob("*.py")]
    made = {"fill.py", "around.py", "stories.py", "world.py"}
    told = (path.read_bytes() for path in sorted(files) if path.parent.name != "pages" or path.name in made)
    return hashlib.sha256(b"".join(told)).hexdigest()[:16]

"""The overview: everything it shows, in one round trip."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ..activity import Activity, told
from ..attention import SHOWN, Line
from ..counting import RUNNING, due_some_time, for_somebody
from ..counts import Counts
from ..late import DUE_SINCE
from ..models.metric import DAY, MINUTE
from ..ranges import Range
from ..tiles import Now, Rule, Tile, tiles
from . import activity
from . import attention as troubles
from .figures import BY_NAME, filled, series_of, span
from .together import Rows, timed

NAMES_SHOWN = 8
FINE = 5  # milliseconds: what is less is no news
FEW = 1000  # are counted on the spot; of more, what was counted when the last minute had ended is near enough

WAITING = f"""SELECT CASE WHEN few < {FEW} THEN few ELSE GREATEST(few, (SELECT waiting FROM rekindle_recovery_metricminute
    WHERE grain = 60 AND name = '' AND minute > now() - interval '5 minutes' ORDER BY minute DESC LIMIT 1)) END
FROM (SELECT CASE WHEN due < {FEW} THEN due + ({for_somebody(FEW)}) ELSE due END AS few FROM ({due_some_time(FEW)}) AS d(due) OFFSET 0) AS counted"""  # noqa: S608

NOW = f"""SELECT ({RUNNING}) AS running, ({WAITING}) AS waiting, d.due, d.oldest, k.workers, k.slots, k.heard,
    (SELECT began_at FROM rekindle_recovery_duty WHERE name = 'sweep' ORDER BY began_at DESC LIMIT 1) AS swept,
    (SELECT sum(completed + failed) / 5.0 FROM rekindle_recovery_metricminute
        WHERE grain = 60 AND name = '' AND minute >= date_bin('1 minute', now(), '2000-01-01Z') - interval '5 minutes') AS pace,
    EXISTS (SELECT FROM rekindle_workflow) AS used
FROM ({DUE_SINCE}) AS d(due, oldest), (SELECT count(*) AS workers, COALESCE(sum(slots), 0) AS slots, max(heartbeat_at) AS heard
    FROM rekindle_worker WHERE ended_at IS NULL AND heartbeat_at > now() - %(stale)s * interval '1 second') AS k"""  # noqa: S608
HELD = "SELECT name, count(*) AS running FROM rekindle_workflow WHERE worker_id IS NOT NULL GROUP BY 1"
ERRORS = """SELECT DISTINCT ON (name) name, left(COALESCE(error ->> 'type', ''), 60) AS type, left(COALESCE(error ->> 'message', ''), 160) AS message FROM (
    SELECT name, error, finished_at FROM rekindle_workflow WHERE status = 'failed' AND finished_at >= %(since)s ORDER BY finished_at DESC LIMIT 500) f
ORDER BY name, finished_at DESC"""
RULES = "SELECT id, metric, threshold, \"window\", value FROM rekindle_recovery_alertrule WHERE enabled AND scope = '' AND threshold > 0 ORDER BY id"
# One run of each duty, its newest; a loose scan of the index, because there are many runs and few duties.
DUTIES = """WITH RECURSIVE known(name) AS (
    (SELECT name FROM rekindle_recovery_duty ORDER BY name LIMIT 1)
    UNION ALL SELECT (SELECT d.name FROM rekindle_recovery_duty d WHERE d.name > known.name ORDER BY d.name LIMIT 1) FROM known WHERE known.name IS NOT NULL)
SELECT d.name, d.ran_by, d.began_at, d.error FROM known CROSS JOIN LATERAL (
    SELECT * FROM rekindle_recovery_duty WHERE name = known.name ORDER BY began_at DESC LIMIT 1) d"""
# What failed for good among the last, and is not told above as given up.
LETTERS = f"""SELECT count(*) AS count FROM (SELECT error FROM rekindle_workflow WHERE status = 'failed' ORDER BY finished_at DESC LIMIT {FEW}) w
WHERE NOT COALESCE(error, '{{}}') ? 'discarded' AND error ->> 'type' IS DISTINCT FROM 'RecoveryFailed'"""  # noqa: S608  (constants)
QUIET_AFTER = timedelta(minutes=3)  # a duty that has not begun for so long is overdue


@dataclass(frozen=True, slots=True)
class Name:
    counts: Counts
    running: int
    error: str
    message: str


@dataclass(frozen=True, slots=True)
class Ran:
    name: str
    by: str
    at: datetime
    trouble: str


@dataclass(frozen=True, slots=True)
class Overview:
    attention: list[Line]
    more_attention: int  # groups
    now: Now
    tiles: list[Tile]
    names: list[Name]
    more_names: int
    duties: list[Ran]
    activity: list[Activity]
    database_ms: int
    letters: int  # dead ones

    @property
    def troubled(self) -> list[Ran]:
        return [duty for duty in self.duties if duty.trouble]

    @property
    def stood_in(self) -> bool:
        """Whether workers do what the scheduler should."""
        return any(duty.by == "worker" for duty in self.duties)


def overview(over: Range) -> Overview:
    twice = span(over, twice=True)
    given = twice.given() | troubles.given() | {"seconds": 0, "most": 10_000}
    found, latency = timed(
        given | _since(over),
        series=series_of(["resume"]),
        names=BY_NAME,
        now=NOW,
        moment="SELECT now() AS now",
        held=HELD,
        errors=ERRORS,
        rules=RULES,
        duties=DUTIES,
        letters=LETTERS,
        attention=troubles.ATTENTION,
        **activity.QUESTIONS,
    )
    moment = datetime.fromisoformat(found["moment"][0]["now"])
    now = _now(found["now"][0])
    buckets = filled(twice, found["series"])
    names = _names(found["names"], found["held"], found["errors"])
    groups = troubles.read(found["attention"])
    return Overview(
        attention=troubles.told(groups),
        more_attention=max(len(groups) - SHOWN, 0),
        now=now,
        tiles=tiles(now, buckets, over, {rule["metric"]: Rule(**rule) for rule in found["rules"]}),
        names=names[:NAMES_SHOWN],
        more_names=max(len(names) - NAMES_SHOWN, 0),
        duties=[_ran(row, moment) for row in found["duties"]],
        activity=told(found),
        database_ms=int(latency * 1000) // FINE * FINE,
        letters=found["letters"][0]["count"],
    )


def _since(over: Range) -> dict[str, Any]:
    """For the names. From a day on, whole hours and days: thirty days of minutes of every name are too many rows."""
    start = span(over).start
    if over.end - over.start < timedelta(hours=24):
        return {"since": start, "names_grain": MINUTE}
    return {"since": start.replace(minute=0), "names_grain": DAY}


def _now(row: dict[str, Any]) -> Now:
    return Now(**row | {name: row[name] and datetime.fromisoformat(row[name]) for name in ("heard", "swept")})


def _names(by_name: Rows, held: Rows, errors: Rows) -> list[Name]:
    counts = {row["name"]: Counts(**row) for row in by_name}
    running = {row["name"]: row["running"] for row in held}
    failed = {row["name"]: row for row in errors}
    found = [
        Name(
            counts.get(name) or Counts(name=name),
            running.get(name, 0),
            *_said(failed.get(name)),
        )
        for name in counts | running
    ]
    return sorted(found, key=lambda one: (-one.running, -one.counts.completed - one.counts.failed, one.counts.name))


def _said(error: dict[str, Any] | None) -> tuple[str, str]:
    """What went wrong, short and whole. That a step failed is said by every failure: the step's own error tells more."""
    if error is None:
        return "", ""
    kind, message = error["type"], error["message"]
    return (message.partition(" failed: ")[2] or message) if kind == "StepFailed" else kind, message


def _ran(row: dict[str, Any], now: datetime) -> Ran:
    at = datetime.fromisoformat(row["began_at"])
    return Ran(row["name"], row["ran_by"], at, row["error"] or ("overdue" if now - at > QUIET_AFTER else ""))

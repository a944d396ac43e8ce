"""The workers page: who lives, what the ended ones left and where it went, and the duties; in one round trip."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from workflows.conf import settings
from workflows.liveness import LOCKED

from ..duties import DUTIES
from .together import together

SHOWN = 200  # live ones
ENDED = 20
LATE_BEATS = 2  # so many intervals without a heartbeat are late

# A free lock says nothing behind a pooler, or before a worker had time to come back to a new server.
ALIVE = f"""SELECT k.id, k.host, k.pid, k.version, k.release, k.slots, k.lost, k.memory, k.alone, k.started_at, k.heartbeat_at,
    k.heartbeat_every, EXTRACT(EPOCH FROM now() - k.heartbeat_at)::float8 AS silence,
    k.pooled OR now() - pg_postmaster_start_time() < %(grace)s * interval '1 second' OR {LOCKED.format(worker="k.id")} AS locked,
    (SELECT count(*) FROM rekindle_workflow w WHERE w.worker_id = k.id) AS held
FROM rekindle_worker k WHERE k.ended_at IS NULL ORDER BY k.host, k.pid, k.id LIMIT {SHOWN}"""  # noqa: S608  (constants)
LEFT = f"""SELECT k.id, k.host, k.pid, k.version, k.release, k.started_at, k.ended_at, k.ended_why, r.held, r.again, r.seconds, r.given_up,
    (SELECT count(*) FROM rekindle_workflow w WHERE w.worker_id = k.id) AS still
FROM (SELECT * FROM rekindle_worker WHERE ended_at > now() - interval '1 day' ORDER BY ended_at DESC LIMIT {ENDED}) k
LEFT JOIN (SELECT worker, count(*) AS held, count(*) FILTER (WHERE resumed_at IS NOT NULL) AS again,
        max(seconds_to_resume + COALESCE(seconds_to_detect, 0)) AS seconds, count(*) FILTER (WHERE outcome = 'gave_up') AS given_up
    FROM rekindle_recovery_recovery WHERE detected_at > now() - interval '25 hours' GROUP BY worker) r ON r.worker = k.id
ORDER BY k.ended_at DESC"""  # noqa: S608  (constants)
# The newest run of each duty.
RUNS = """SELECT n.name, d.ran_by, d.began_at, d.ended_at, d.found, d.recovered, d.failed, d.error
FROM unnest(%(duties)s::text[]) AS n(name) LEFT JOIN LATERAL (
    SELECT * FROM rekindle_recovery_duty WHERE name = n.name ORDER BY began_at DESC LIMIT 1) d ON true"""


@dataclass(frozen=True, slots=True)
class Alive:
    row: dict[str, Any]
    state: str  # alive, late, dead
    why: str
    since: datetime
    heard: datetime


@dataclass(frozen=True, slots=True)
class Ended:
    row: dict[str, Any]
    since: datetime
    at: datetime


@dataclass(frozen=True, slots=True)
class Run:
    row: dict[str, Any]
    at: datetime | None
    state: str
    word: str
    lag: float  # seconds past the moment at which it should have begun again


@dataclass(frozen=True, slots=True)
class Crew:
    alive: list[Alive]
    ended: list[Ended]
    duties: list[Run]
    mixed: list[str]  # sentences


def crew() -> Crew:
    given = {"grace": settings().restart_grace, "duties": list(DUTIES)}
    found = together(given, alive=ALIVE, ended=LEFT, duties=RUNS)
    now = timezone.now()
    return Crew(
        alive=[_alive(row) for row in found["alive"]],
        ended=[Ended(row, _at(row["started_at"]), _at(row["ended_at"])) for row in found["ended"]],
        duties=[_run(row, now) for row in found["duties"]],
        mixed=[text for what in ("version", "release") if (text := _mixed(found["alive"], what))],
    )


def _alive(row: dict[str, Any]) -> Alive:
    state, why = "alive", ""
    if row["silence"] >= settings().stale_after:
        state, why = "dead", "silent for too long; its work is taken over by the next sweep"
    elif not row["locked"]:
        state, why = "dead", "its lock is free; its work is taken over by the next sweep"
    elif row["silence"] > LATE_BEATS * row["heartbeat_every"]:
        state, why = "late", f"expected every {row['heartbeat_every']:g} s"
    return Alive(row, state, why, _at(row["started_at"]), _at(row["heartbeat_at"]))


def _run(row: dict[str, Any], now: datetime) -> Run:
    if row["began_at"] is None:
        return Run(row, None, "pending", "Never ran", 0)
    at, every = _at(row["began_at"]), DUTIES[row["name"]].every
    lag = max((now - at).total_seconds() - every, 0.0)
    if row["error"]:
        state, word = "failed", "Failed"
    elif lag > 2 * every:
        state, word = "late", "Overdue"
    elif row["ended_at"] is None:
        state, word = "running", "Under way"
    else:
        state, word = "completed", "In time"
    return Run(row, at, state, word, lag)


def _mixed(rows: list[dict[str, Any]], what: str) -> str:
    seen = sorted({row[what] or "none" for row in rows})
    return f"The live workers run different {what}s: {', '.join(seen)}." if len(seen) > 1 else ""


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text)

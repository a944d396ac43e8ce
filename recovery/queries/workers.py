"""The workers page: who lives, what the ended ones left and where it went, and the duties; in one round trip."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from workflows.conf import settings
from workflows.liveness import LOCKED
from workflows.models import Worker, Workflow

from .. import killing
from ..duties import DUTIES
from ..outcomes import OUTCOMES, plan_in_words
from ..planning import Plan, plan_of
from .together import together
from .workflow import look as look_at

SHOWN = 200  # live ones
ENDED = 20
HAND = 3  # of what a live one holds, and
LEFT = 6  # of what a dead one left, are named
MOST_HELD = 100  # are counted before one is killed
NEWS = timedelta(minutes=10)  # a death is told in full without being asked
LATE_BEATS = 2  # so many intervals without a heartbeat are late

# A free lock says nothing behind a pooler, or before a worker had time to come back to a new server.
ALIVE = f"""SELECT k.id, k.host, k.pid, k.version, k.release, k.slots, k.lost, k.memory, k.alone, k.started_at, k.heartbeat_at,
    k.heartbeat_every, EXTRACT(EPOCH FROM now() - k.heartbeat_at)::float8 AS silence,
    k.pooled OR now() - pg_postmaster_start_time() < %(grace)s * interval '1 second' OR {LOCKED.format(worker="k.id")} AS locked,
    (SELECT count(*) FROM rekindle_workflow w WHERE w.worker_id = k.id) AS held,
    (SELECT json_agg(h) FROM (SELECT w.id, w.name, w.key, s.name AS step FROM rekindle_workflow w JOIN rekindle_step s ON s.workflow_id = w.id
        WHERE w.worker_id = k.id AND s.status = 'open' AND s.kind = 'step' ORDER BY s.began_at LIMIT {HAND}) h) AS hand
FROM rekindle_worker k WHERE k.ended_at IS NULL ORDER BY k.host, k.pid, k.id LIMIT {SHOWN}"""  # noqa: S608  (constants)
GONE = f"""SELECT k.id, k.host, k.pid, k.version, k.release, k.started_at, k.ended_at, k.last_seen_at, k.ended_why, r.*,
    (SELECT count(*) FROM rekindle_workflow w WHERE w.worker_id = k.id) AS still,
    (SELECT json_agg(l) FROM (SELECT r.workflow_id AS id, r.workflow_name AS name, r.workflow_key AS key, r.step, r.in_step, r.plan, r.outcome,
            r.resumed_at IS NOT NULL AS again, r.seconds_to_resume + COALESCE(r.seconds_to_detect, 0) AS seconds, h.host || ':' || h.pid AS holder
        FROM rekindle_recovery_recovery r LEFT JOIN rekindle_workflow w ON w.id = r.workflow_id LEFT JOIN rekindle_worker h ON h.id = w.worker_id
        WHERE r.worker = k.id ORDER BY r.id LIMIT {LEFT}) l) AS went
FROM (SELECT * FROM rekindle_worker WHERE ended_at > now() - interval '1 day' ORDER BY ended_at DESC LIMIT {ENDED}) k
LEFT JOIN LATERAL (SELECT count(*) AS held, count(*) FILTER (WHERE resumed_at IS NOT NULL) AS again,
        max(seconds_to_resume + COALESCE(seconds_to_detect, 0)) AS seconds, count(*) FILTER (WHERE outcome = 'gave_up') AS given_up
    FROM rekindle_recovery_recovery WHERE worker = k.id) r ON true
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
    can_be_killed: bool


@dataclass(frozen=True, slots=True)
class Ended:
    row: dict[str, Any]
    since: datetime
    at: datetime
    went: list[dict[str, Any]]  # where what it held went, in words
    is_news: bool

    @property
    def more(self) -> int:
        return int(self.row["held"]) - len(self.went)


@dataclass(frozen=True, slots=True)
class Run:
    row: dict[str, Any]
    at: datetime | None
    state: str
    word: str
    lag: float  # seconds past the moment at which it should have begun again


@dataclass(frozen=True, slots=True)
class Hands:
    worker: Worker
    plans: list[Plan]
    count: int

    @property
    def more(self) -> str:
        rest = self.count - len(self.plans)
        return "" if rest <= 0 else f"more than {MOST_HELD - LEFT}" if self.count > MOST_HELD else str(rest)


@dataclass(frozen=True, slots=True)
class Crew:
    alive: list[Alive]
    ended: list[Ended]
    duties: list[Run]
    mixed: list[str]  # sentences


def crew() -> Crew:
    given = {"grace": settings().restart_grace, "duties": list(DUTIES)}
    found = together(given, alive=ALIVE, ended=GONE, duties=RUNS, clock="SELECT now() AS now")
    now = _at(found["clock"][0]["now"])
    return Crew(
        alive=[_alive(row) for row in found["alive"]],
        ended=[_ended(row, now) for row in found["ended"]],
        duties=[_run(row, now) for row in found["duties"]],
        mixed=[text for what in ("version", "release") if (text := _mixed(found["alive"], what))],
    )


def hands(number: int) -> Hands | None:
    """What one worker holds, with the plan of each if it died now: of the first of them."""
    worker = Worker.objects.using(settings().database).filter(pk=number).first()
    if worker is None:
        return None
    held = Workflow.objects.using(settings().database).filter(worker=worker)
    ids = list(held.order_by("running_at").values_list("pk", flat=True)[: MOST_HELD + 1])
    plans = [plan_of(look.workflow, look.steps) for look in look_at(ids[:LEFT])]
    return Hands(worker, plans, len(ids))


def _alive(row: dict[str, Any]) -> Alive:
    state, why = "alive", ""
    if row["silence"] >= settings().stale_after:
        state, why = "dead", "silent for too long; its work is taken over by the next sweep"
    elif not row["locked"]:
        state, why = "dead", "its lock is free; its work is taken over by the next sweep"
    elif row["silence"] > LATE_BEATS * row["heartbeat_every"]:
        state, why = "late", f"expected every {row['heartbeat_every']:g} s"
    can_be_killed = state != "dead" and killing.can_be_killed(row["host"], row["pid"])
    return Alive(row, state, why, _at(row["started_at"]), _at(row["heartbeat_at"]), can_be_killed)


def _ended(row: dict[str, Any], now: datetime) -> Ended:
    at = _at(row["last_seen_at"] or row["ended_at"])
    went = [left | dict(zip(("state", "word", "said"), _went(left), strict=True)) for left in row["went"] or ()]
    return Ended(row, _at(row["started_at"]), at, went, now - at < NEWS)


def _went(left: dict[str, Any]) -> tuple[str, str, str]:
    state, word = OUTCOMES.get(left["outcome"], ("failed", left["outcome"]))
    if left["outcome"] == "pending" and left["again"]:
        state, word = "running", "Running again"
    return state, word, plan_in_words(left["plan"] or {})


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

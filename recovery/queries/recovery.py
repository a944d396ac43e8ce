"""The recovery page: figures, incidents, every recovery, dead letters, sweeps and rules, in one round trip."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from workflows.conf import settings

from ..alerts import is_past
from ..incidents import Incident, incidents
from ..late import GRACE, LATE, STUCK, STUCK_AFTER
from ..models.recovery import Reason
from ..outcomes import FOUND, OUTCOMES, REASONS, plan_in_words
from ..ranges import Range
from ..search import spell
from ..sentences import Sentence
from ..tuning import EVERYBODY, stamp
from .together import Rows, together

PAGE = 50
INCIDENTS, PANEL, SWEEPS = 10, 10, 5
DEAD = 200  # workers, of which incidents are made,
LEFT = 5000  # from what they left last
SORTED = 5000  # durations
AGAIN = 300  # of those with the most attempts are looked at, to find who was recovered most often
LETTERS = 1000  # dead letters are looked at,
GROUPS = 20  # groups of them shown,
AT_ONCE = 100  # of one group acted on in one go, where no search finds exactly that group
STEP, TYPE = 100, 80  # characters of a step and of a type, by which they are grouped

_IN_RANGE = "FROM rekindle_recovery_recovery WHERE detected_at >= %(start)s AND detected_at <= %(end)s"


def _pth(column: str, share: float) -> str:
    return f"percentile_cont({share}) WITHIN GROUP (ORDER BY {column})"


# Of many thousands only every n-th is sorted: a percentile needs no more.
TIMES = f"""WITH taken AS MATERIALIZED (SELECT GREATEST(count(*) / {SORTED}, 1) AS every {_IN_RANGE})
SELECT {_pth("seconds_to_detect", 0.5)} AS detect_median, {_pth("seconds_to_detect", 0.95)} AS detect_p95,
    {_pth("seconds_to_resume", 0.5)} AS resume_median, {_pth("seconds_to_resume", 0.95)} AS resume_p95
{_IN_RANGE} AND mod(id, (SELECT every FROM taken)) = 0"""  # noqa: S608  (constants)
# What one worker left. Work runs again when the last of it does.
DEATHS = f"""SELECT worker, max(worker_name) AS worker_name, bool_or(finding = 'silent_worker') AS silent,
    COALESCE(max(last_seen_at), min(detected_at)) AS at, count(*) AS held, count(*) FILTER (WHERE resumed_at IS NOT NULL) AS again,
    max(seconds_to_resume + COALESCE(seconds_to_detect, 0)) AS seconds, count(*) FILTER (WHERE outcome = 'gave_up') AS given_up,
    count(*) FILTER (WHERE outcome = 'observed') AS observed, count(*) FILTER (WHERE outcome = 'pending' AND resumed_at IS NULL) AS open
FROM (SELECT * {_IN_RANGE} AND worker IS NOT NULL ORDER BY detected_at DESC LIMIT {LEFT}) AS left_last
GROUP BY worker ORDER BY max(detected_at) DESC LIMIT {DEAD}"""  # noqa: S608  (constants)
RECOVERIES = f"""SELECT * FROM rekindle_recovery_recovery WHERE (%(before)s::bigint IS NULL OR id < %(before)s::bigint)
    AND (%(workers)s::bigint[] IS NULL OR worker = ANY(%(workers)s::bigint[])) ORDER BY id DESC LIMIT {PAGE + 1}"""  # noqa: S608  (constants)
BY_REASON = f"""SELECT reason, count(*) AS count, avg(attempt)::float8 AS avg_attempts, count(*) FILTER (WHERE outcome = 'recovered') AS recovered,
    count(*) FILTER (WHERE outcome = 'pending') AS pending, count(*) FILTER (WHERE outcome = 'gave_up') AS given_up
{_IN_RANGE} GROUP BY 1 ORDER BY 2 DESC, 1"""
# From the most attempts downwards, each number of them found by a probe of the index.
MOST_RECOVERED = f"""WITH RECURSIVE tried(attempt) AS (
    (SELECT attempt FROM rekindle_recovery_recovery ORDER BY attempt DESC LIMIT 1)
    UNION ALL SELECT (SELECT r.attempt FROM rekindle_recovery_recovery r WHERE r.attempt < tried.attempt ORDER BY r.attempt DESC LIMIT 1)
    FROM tried WHERE tried.attempt IS NOT NULL)
SELECT workflow_id, max(workflow_name) AS name, max(workflow_key) AS key, max(attempt) AS attempts, count(*) AS times,
    min(detected_at) AS first, max(detected_at) AS last
FROM (SELECT DISTINCT most.workflow_id AS id FROM (SELECT most.workflow_id FROM tried CROSS JOIN LATERAL (SELECT workflow_id
        {_IN_RANGE} AND attempt = tried.attempt ORDER BY attempt DESC, detected_at DESC LIMIT {AGAIN}) most LIMIT {AGAIN}) most) AS tried_most
    CROSS JOIN LATERAL (SELECT * {_IN_RANGE} AND workflow_id = tried_most.id OFFSET 0) r
GROUP BY 1 ORDER BY attempts DESC, times DESC, last DESC LIMIT {PANEL}"""  # noqa: S608  (constants)
# Those that failed last, by what they have in common: the step that failed and its own error, which tell more than that one failed.
DEAD_LETTERS = f"""SELECT name, step, type, count(*) AS count, max(finished_at) AS newest, min(finished_at) AS oldest, sum(recoveries) AS recoveries,
    (array_agg(message ORDER BY finished_at DESC))[1] AS message, (array_agg(id ORDER BY finished_at DESC))[1:{AT_ONCE}] AS ids,
    (array_agg(COALESCE(key, '') ORDER BY finished_at DESC))[1] AS key
FROM (SELECT w.id, w.name, w.key, w.finished_at, w.recoveries, left(COALESCE(s.name, w.error -> 'open' ->> 0, ''), {STEP}) AS step,
        left(COALESCE(s.error ->> 'type', w.error ->> 'type', ''), {TYPE}) AS type,
        left(COALESCE(s.error ->> 'message', w.error ->> 'message', ''), 200) AS message
    FROM (SELECT * FROM rekindle_workflow WHERE status = 'failed' ORDER BY finished_at DESC LIMIT {LETTERS}) w
    LEFT JOIN LATERAL (SELECT name, error FROM rekindle_step WHERE workflow_id = w.id AND status = 'failed'
        AND w.error ->> 'type' = 'StepFailed' ORDER BY id DESC LIMIT 1) s ON true
    WHERE NOT COALESCE(w.error, '{{}}') ? 'discarded') l
GROUP BY name, step, type ORDER BY count(*) DESC, max(finished_at) DESC LIMIT {GROUPS + 1}"""  # noqa: S608  (constants)
LAST_SWEEPS = f"""SELECT id, began_at, ended_at, ran_by, found, recovered, failed, held, skipped, error FROM rekindle_recovery_duty
WHERE name = 'sweep' ORDER BY began_at DESC LIMIT {SWEEPS}"""  # noqa: S608  (constants)
RULES = """SELECT id, name, metric, comparison, threshold, "window", severity, enabled, value, trouble, changed_by
FROM rekindle_recovery_alertrule ORDER BY id LIMIT 100"""
EVERYBODYS = "SELECT mode, changed_at, changed_by, reason FROM rekindle_policy WHERE name = %(everybody)s"

IN_SECONDS = ("stale_duration", "scheduler_silence")
MOMENTS = (
    "at",
    "first",
    "last",
    "newest",
    "oldest",
    "due_at",
    "detected_at",
    "finished_at",
    "began_at",
    "ended_at",
    "changed_at",
)


@dataclass(frozen=True, slots=True)
class Rescues:
    figures: dict[str, Any]
    incidents: list[tuple[Incident, Sentence]]
    more_incidents: int
    recoveries: Rows
    older: int | None  # where the next page begins
    reasons: Rows
    most: Rows
    late: Rows
    stuck: Rows
    letters: Rows
    more_letters: bool
    sweeps: Rows
    rules: Rows
    mode: str  # in force
    policy: dict[str, Any] | None  # the one called *
    seen: str


def rescues(over: Range, before: int | None = None, workers: list[int] | None = None) -> Rescues:
    """Of the recoveries those before a number, or of an incident: of the workers that died in it."""
    given: dict[str, Any] = {"start": over.start, "end": over.end, "before": before, "workers": workers}
    found = together(
        given | {"grace": GRACE, "stuck_after": STUCK_AFTER, "most": PANEL, "everybody": EVERYBODY},
        times=TIMES,
        incidents=DEATHS,
        recoveries=RECOVERIES,
        reasons=BY_REASON,
        most=MOST_RECOVERED,
        late=LATE.replace("%(seconds)s", "%(grace)s"),
        stuck=STUCK.replace("%(seconds)s", "%(stuck_after)s"),
        letters=DEAD_LETTERS,
        sweeps=LAST_SWEEPS,
        rules=RULES,
        policy=EVERYBODYS,
    )
    for rows in found.values():
        for row in rows:
            row |= {name: datetime.fromisoformat(row[name]) for name in MOMENTS if row.get(name)}
    page = [_told(row) for row in found["recoveries"]]
    fallen = incidents(found["incidents"])
    kinds = Counter((row["name"], row["type"]) for row in found["letters"])
    now = timezone.now()
    policy = found["policy"][0] if found["policy"] else None
    return Rescues(
        figures=_figures(found["reasons"]) | found["times"][0],
        incidents=[(one, one.sentence(now)) for one in fallen[:INCIDENTS]],
        more_incidents=max(len(fallen) - INCIDENTS, 0),
        recoveries=page[:PAGE],
        older=page[PAGE - 1]["id"] if len(page) > PAGE else None,
        reasons=[row | {"word": REASONS.get(row["reason"], row["reason"])} for row in found["reasons"]],
        most=found["most"],
        late=found["late"],
        stuck=found["stuck"],
        letters=[_letters(row, kinds) for row in found["letters"][:GROUPS]],
        more_letters=len(found["letters"]) > GROUPS,
        sweeps=found["sweeps"],
        rules=[_rule(row) for row in found["rules"]],
        mode=(policy and policy["mode"]) or settings().mode,
        policy=policy,
        seen=stamp(policy["changed_at"] if policy else None),
    )


def _figures(reasons: Rows) -> dict[str, Any]:
    """Of all reasons together."""
    detected = sum(row["count"] for row in reasons)
    automatic = sum(row["count"] for row in reasons if row["reason"] != Reason.MANUAL)
    counts = {name: sum(row[name] for row in reasons) for name in ("recovered", "pending", "given_up")}
    return counts | {"detected": detected, "share": automatic / detected if detected else None}


def _rule(row: dict[str, Any]) -> dict[str, Any]:
    past = row["enabled"] and row["value"] is not None and is_past(row["value"], row["comparison"], row["threshold"])
    return row | {"in_seconds": row["metric"] in IN_SECONDS, "is_past": past}


def _letters(row: dict[str, Any], kinds: Counter[tuple[str, str]]) -> dict[str, Any]:
    """With the search that lists the whole group, and whether it lists nothing else: then all of it can be acted on."""
    search = spell(is_="dead-letter", name=row["name"], step=row["step"], error=row["type"])
    told = row["type"] and (row["step"] or kinds[row["name"], row["type"]] == 1)  # nothing says: at no step
    cut = len(row["step"]) >= STEP or len(row["type"]) >= TYPE
    return row | {
        "search": search or spell(is_="dead-letter", error=row["type"]) or "is:dead-letter",
        "is_exact": bool(search and told and not cut),
        "joined": ".".join(row["ids"]),
        "shown": len(row["ids"]),
    }


def _told(row: dict[str, Any]) -> dict[str, Any]:
    state, word = OUTCOMES.get(row["outcome"], ("failed", row["outcome"]))
    found = FOUND.get(row["finding"], row["finding"])
    return row | {"state": state, "word": word, "found": found, "said": plan_in_words(row["plan"] or {})}

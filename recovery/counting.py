"""How things are counted: the SQL behind every figure, for the duty that keeps the counts and for the minutes it has not kept yet."""

from collections.abc import Collection

from .histogram import RESCUE, TOOK
from .late import GRACE
from .models.recovery import UNRECOVERED, Reason
from .search.troubles import ALIVE

MOST = 50_000  # more need not be counted to say "many"
SKEW = "interval '5 minutes'"  # by which the clocks that make ids may differ from the database's

REASONS = tuple(Reason.values)
COUNTS = (
    "started",
    "completed",
    "rescued",
    "failed",
    "cancelled",
    "late",
    "recovered",
    "unrecovered",
    "given_up",
    *REASONS,
)
HISTOGRAMS = {"took": TOOK, "detect": RESCUE, "resume": RESCUE}
SAMPLED = {  # how samples of many minutes become one
    "running": "avg(running)::int AS running",
    "waiting": "avg(waiting)::int AS waiting",
    "due": "max(due) AS due",
    "oldest": "max(oldest) AS oldest",
}


def _bin(column: str) -> str:
    return f"date_bin('1 minute', {column}, '2000-01-01Z')"


def _id_at(moment: str) -> str:
    """The first id that could be made at a moment: they begin with the time in milliseconds."""
    return f"(lpad(to_hex(floor(extract(epoch FROM {moment}) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid"


def _bucket(seconds: str, bounds: tuple[float, ...]) -> str:
    return f"width_bucket(({seconds})::float8, ARRAY[{', '.join(map(str, bounds))}]::float8[])"


def _number(*what: str) -> str:
    words = ", ".join(f"'{word}'" for word in what)
    return f"COALESCE(sum(n) FILTER (WHERE what IN ({words})), 0)::int"


def _histogram(bounds: tuple[float, ...], *what: str) -> str:
    words = ", ".join(f"'{word}'" for word in what)
    cells = (f"COALESCE(sum(n) FILTER (WHERE what IN ({words}) AND bucket = {i}), 0)" for i in range(len(bounds) + 1))
    return f"CASE WHEN bool_or(what IN ({words}) AND bucket IS NOT NULL) THEN ARRAY[{', '.join(cells)}]::int[] END"


NAMES = """finished_names(name) AS (
    (SELECT name FROM rekindle_workflow WHERE finished_at IS NOT NULL ORDER BY name LIMIT 1)
    UNION ALL
    SELECT (SELECT w.name FROM rekindle_workflow w WHERE w.finished_at IS NOT NULL AND w.name > finished_names.name ORDER BY w.name LIMIT 1)
    FROM finished_names WHERE finished_names.name IS NOT NULL
)"""


_DRAWN = {
    "took": _histogram(TOOK, "completed", "rescued"),
    "detect": _histogram(RESCUE, "detect"),
    "resume": _histogram(RESCUE, "resume"),
}
_MARKED = {
    "detect": f"""SELECT {_bin("settled_at")}, workflow_name, 'detect', {_bucket("seconds_to_detect", RESCUE)}
    FROM ({{rescues}}) r WHERE seconds_to_detect IS NOT NULL""",  # noqa: S608  (constants)
    "resume": f"""SELECT {_bin("settled_at")}, workflow_name, 'resume', {_bucket("seconds_to_resume + COALESCE(seconds_to_detect, 0)", RESCUE)}
    FROM ({{rescues}}) r WHERE seconds_to_resume IS NOT NULL""",  # noqa: S608  (constants)
}


def counted(start: str, end: str, also: str = "", histograms: Collection[str] = HISTOGRAMS) -> str:
    """CTEs that end in `counted`: a row for each minute and name between two moments (SQL), and one for all names; with
    these histograms, because to plan one takes longer than to count a minute.

    Name by name, so that the index of what a name finished answers; what was asked for is found by its id, which
    begins with the time. OFFSET 0 keeps each name's look a look of its own.
    """
    failures = ", ".join(f"'{outcome}'" for outcome in UNRECOVERED)
    rescues = f"SELECT * FROM rekindle_recovery_recovery WHERE settled_at >= {start} AND settled_at < {end}"  # noqa: S608
    drawn = "".join(f", {_DRAWN[one]} AS {one}" for one in histograms)
    return f"""{NAMES}, marks(minute, name, what, bucket) AS (
    SELECT {_bin("w.finished_at")}, n.name, CASE WHEN w.status = 'completed' AND w.recoveries > 0 THEN 'rescued' ELSE w.status END,
        CASE WHEN w.status = 'completed' THEN {_bucket("extract(epoch FROM w.finished_at - w.due_at)", TOOK)} END
    FROM finished_names n CROSS JOIN LATERAL (
        SELECT finished_at, due_at, status, recoveries FROM rekindle_workflow
        WHERE name = n.name AND finished_at >= {start} AND finished_at < {end} OFFSET 0) w
    UNION ALL
    SELECT {_bin("created_at")}, name, 'started', NULL FROM rekindle_workflow
    WHERE id >= {_id_at(f"{start} - {SKEW}")} AND id < {_id_at(f"{end} + {SKEW}")} AND created_at >= {start} AND created_at < {end}
    UNION ALL
    SELECT {_bin("started_at")}, name, 'late', NULL FROM rekindle_workflow
    WHERE lateness >= 60 AND lateness > {GRACE} AND started_at >= {start} AND started_at < {end}
    UNION ALL
    SELECT {_bin("settled_at")}, workflow_name, CASE outcome WHEN 'recovered' THEN 'recovered' ELSE 'unrecovered' END, NULL
    FROM ({rescues}) r WHERE outcome IN ('recovered', {failures})
    UNION ALL
    SELECT {_bin("settled_at")}, workflow_name, 'given up', NULL FROM ({rescues}) r WHERE outcome = 'gave_up'
    {"".join(f"UNION ALL {_MARKED[one].format(rescues=rescues)} " for one in histograms if one in _MARKED)}
    UNION ALL
    SELECT {_bin("detected_at")}, workflow_name, reason, NULL FROM rekindle_recovery_recovery WHERE detected_at >= {start} AND detected_at < {end}
), cells AS (
    SELECT minute, name, what, bucket, count(*) AS n FROM marks GROUP BY 1, 2, 3, 4 {also}
), counted AS (
    SELECT minute, COALESCE(name, '') AS name, {_number("started")} AS started, {_number("completed", "rescued")} AS completed,
        {_number("rescued")} AS rescued, {_number("failed")} AS failed, {_number("cancelled")} AS cancelled, {_number("late")} AS late,
        {_number("recovered")} AS recovered, {_number("unrecovered")} AS unrecovered, {_number("given up")} AS given_up,
        {", ".join(f"{_number(reason)} AS {reason}" for reason in REASONS)}{drawn}
    FROM cells GROUP BY GROUPING SETS ((minute, name), (minute)) HAVING GROUPING(name) = 1 OR name IS NOT NULL
)"""  # noqa: S608  (constants)


def added(name: str) -> str:
    """A histogram summed element by element: twenty-odd plain sums are cheaper than taking the arrays apart."""
    cells = (f"COALESCE(sum({name}[{i}]), 0)" for i in range(1, len(HISTOGRAMS[name]) + 2))
    return f"CASE WHEN count({name}) > 0 THEN ARRAY[{', '.join(cells)}]::int[] END AS {name}"


RUNNING = "SELECT count(*) FROM rekindle_workflow WHERE worker_id IS NOT NULL"


def due_some_time(most: int) -> str:
    return f"SELECT count(*) FROM (SELECT FROM rekindle_workflow WHERE wake_at IS NOT NULL LIMIT {most}) w"  # noqa: S608


def for_somebody(most: int) -> str:
    """Waits for somebody, and for no time."""
    return f"""SELECT count(*) FROM (SELECT FROM rekindle_step WHERE status = 'waiting' AND basket <> '' AND wake_at IS NULL
    AND {ALIVE} LIMIT {most}) s"""  # noqa: S608  (constants)


def waiting(most: int) -> str:
    """SQL: what is due some time or waits for somebody, as far as it is worth counting."""
    return f"SELECT ({due_some_time(most)}) + ({for_somebody(most)})"

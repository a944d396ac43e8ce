"""What is asked for: pages and polls, with what an address needs to know of each database; then commands and duties."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from io import StringIO
from typing import Literal

from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from recovery import duties, late
from recovery.charts import CHARTS
from recovery.ranges import LONGEST
from workflows.errors import Refused

Kind = Literal["page", "poll", "known", "csv"]  # known: a poll by somebody who has what it would say

YEAR = LONGEST - timedelta(days=1)  # the longest range that is still one when the last round is asked

FACTS = {
    "newest": "SELECT string_agg(id::text, '.') FROM (SELECT id FROM rekindle_workflow ORDER BY id DESC LIMIT 50) w",
    "failed": "SELECT id FROM rekindle_workflow WHERE status = 'failed' ORDER BY id DESC LIMIT 1",
    "running": "SELECT id FROM rekindle_workflow WHERE status = 'running' AND worker_id IS NOT NULL ORDER BY id DESC LIMIT 1",
    "orphan": "SELECT id FROM rekindle_workflow WHERE status = 'running' AND worker_id IS NULL ORDER BY id DESC LIMIT 1",
    "queued": "SELECT id FROM rekindle_workflow WHERE status = 'queued' ORDER BY id LIMIT 1",
    "pended": "SELECT id FROM rekindle_workflow WHERE basket <> '' ORDER BY id DESC LIMIT 1",
    "short": "SELECT workflow_id FROM rekindle_step WHERE position = 2 AND name = 'save_invoice' ORDER BY id DESC LIMIT 1",
    "long": "SELECT workflow_id FROM rekindle_step WHERE name = 'page 499' LIMIT 1",
    "key": "SELECT key FROM rekindle_workflow WHERE key IS NOT NULL ORDER BY id LIMIT 1",
    "customer": "SELECT input ->> 'customer' FROM rekindle_workflow WHERE name = 'order' ORDER BY id LIMIT 1",
    "old": "SELECT id FROM rekindle_workflow ORDER BY id OFFSET 400 LIMIT 1",
    "oldest_recovery": "SELECT id FROM rekindle_recovery_recovery ORDER BY id OFFSET 50 LIMIT 1",
    "oldest_entry": "SELECT id FROM rekindle_recovery_auditentry ORDER BY id OFFSET 50 LIMIT 1",
}


def facts() -> dict[str, str]:
    with connection.cursor() as cursor:
        found = {}
        for name, question in FACTS.items():
            cursor.execute(question)
            found[name] = str(cursor.fetchone()[0])
        return found | {"begins": found["short"][:13], "year_ago": f"{timezone.now() - YEAR:%Y-%m-%dT%H:%M}"}


@dataclass(frozen=True)
class Ask:
    group: str
    title: str
    address: str  # with names of facts in braces
    kind: Kind = "page"
    who: str = "otto"
    polls: bool = False  # it names its poll itself, with the rows it shows
    like: str = ""  # a full page of its kind, for a page that the small one cannot fill


SEARCHES = (
    *(f"status:{status}" for status in ("completed", "running", "failed", "paused", "pending", "queued", "cancelled")),
    "-status:completed",
    "name:order",
    "name:in*",
    "name:report",
    "name:year_end",
    "name:order status:failed",
    "name:report status:failed",
    "name:nothing",
    "key:{key}",
    "key:nothing",
    "{key}",
    "step:charge_card",
    "step:nothing",
    "error:TimeoutError",
    "error:nothing",
    "worker:host-1",
    "attempts:>0",
    "attempts:3",
    "attempts:0",
    "age:>10m",
    "age:<1h",
    "age:>20d",
    "age:>40d",
    "age:>20d status:failed",
    "age:<1h status:cancelled",
    *(f"is:{word}" for word in ("orphan", "late", "uncertain", "blocked", "held")),
    "basket:fraud-review",
    "basket:approval name:order",
    "name:order version:1",
    "name:report version:2",
    "id:{short}",
    "id:{begins}",
    "input.customer:{customer}",
    "input.customer:none",
    "input.customer:{customer} status:failed",
)
VIEWS = ("running", "attention", "failed", "recovered", "people", "waiting", "completed")
A_YEAR = "from={year_ago}"
RANGES = {"1h": "range=1h", "24h": "range=24h", "7d": "range=7d", "30d": "range=30d", "399d": A_YEAR}
LIST = "/workflows/"
TABS = ("events", "recovery", "data", "paths", "audit")
# fmt: off
TABLES = ("rekindle/workflow", "rekindle/step", "rekindle/event", "rekindle/worker", "rekindle_recovery/recovery", "rekindle_recovery/duty",
    "rekindle_recovery/metricminute", "rekindle_recovery/alert", "rekindle_recovery/auditentry")
# Every filter and search the admin has. A pause is found among the paused, a waiting step or a block by its workflow, and the
# figures of a name by leafing: no index answers the filters that were there for these, and the admin refuses them now.
FILTERED = {
    "rekindle/workflow": ("status__exact=failed", "status__exact=cancelled", "status__exact=paused", "status__exact=completed",
        "q={key}", "q={short}", "q=year_end"),
    "rekindle/event": ("q={short}", "q={long}"),
    "rekindle/step": ("q={short}", "q={pended}", "q={long}"),
    "rekindle/worker": ("ended_why__exact=died",),
    "rekindle_recovery/recovery": ("outcome__exact=refused", "outcome__exact=recovered", "q={orphan}"),
    "rekindle_recovery/duty": ("name__exact=sweep", "ran_by__exact=worker"),
    "rekindle_recovery/metricminute": ("p=20",),
    "rekindle_recovery/alert": ("severity__exact=critical",),
    "rekindle_recovery/auditentry": ("q=ada", "q=nobody"),
}
# fmt: on


def _overview() -> Iterator[Ask]:
    for over, query in RANGES.items():
        yield Ask("overview", f"overview {over}", f"/?{query}")
        yield Ask("overview", f"overview {over}, poll", f"/?{query}", "poll")
    yield Ask("overview", "overview, poll, nothing new", "/", "known")
    yield Ask("overview", "rail, poll", "/rail?here=overview", "poll")
    yield Ask("overview", "healthz", "/healthz")


def _charts() -> Iterator[Ask]:
    for name in CHARTS:
        for over, query in RANGES.items():
            yield Ask("charts", f"{name} {over}", f"/charts/{name}.json?{query}", "poll")
    yield Ask("charts", "throughput 30d, table", "/charts/throughput.html?range=30d")
    yield Ask("charts", "throughput 30d, CSV", "/charts/throughput.csv?range=30d", "csv")


def _list() -> Iterator[Ask]:
    yield Ask("list", "list", "/workflows/")
    yield Ask("list", "list, poll", "/workflows/", "poll", polls=True)
    yield Ask("list", "list, poll, nothing new", "/workflows/", "known", polls=True)
    yield Ask("list", "list, an old page", "/workflows/?before={old}")
    for over, query in RANGES.items():
        yield Ask("list", f"list {over}", f"/workflows/?{query}", like=LIST)
    for view in VIEWS:
        yield Ask("list", f"view {view}", f"/workflows/?view={view}", like=LIST)
        yield Ask("list", f"view {view}, poll", f"/workflows/?view={view}", "poll", polls=True, like=LIST)
    yield Ask("list", "CSV, first byte", "/workflows.csv", "csv")
    yield Ask("list", "CSV failed, first byte", "/workflows.csv?view=failed", "csv")


def _search() -> Iterator[Ask]:
    for words in SEARCHES:
        yield Ask("search", words, f"/workflows/?q={words}", like=LIST)
    for words in ("status:cancelled", "name:order", "is:late", "error:TimeoutError", "attempts:0"):
        yield Ask("search", f"{words}, poll", f"/workflows/?q={words}", "poll", polls=True, like=LIST)


def _workflow() -> Iterator[Ask]:
    for which, title in (
        ("short", "3 steps"),
        ("long", "500 steps"),
        ("failed", "failed"),
        ("running", "running"),
        ("orphan", "orphan"),
        ("queued", "queued"),
        ("pended", "in a basket"),
    ):
        yield Ask("workflow", f"workflow, {title}", f"/workflows/{{{which}}}/")
        yield Ask("workflow", f"workflow, {title}, poll", f"/workflows/{{{which}}}/", "poll")
    yield Ask("workflow", "workflow, 500 steps, every row", "/workflows/{long}/?rows=all")
    yield Ask("workflow", "workflow, poll, nothing new", "/workflows/{short}/", "known")
    for tab in TABS:
        yield Ask("workflow", f"workflow, tab {tab}", f"/workflows/{{failed}}/?tab={tab}")
    yield Ask("workflow", "dialog recover", "/workflows/{failed}/ask/recover")
    yield Ask("workflow", "dialog cancel, 50 of them", "/workflows/ask/cancel?ids={newest}")
    for words in ("name:order", "-status:completed", "status:failed"):
        yield Ask("workflow", f"dialog cancel, all of {words}", f"/workflows/ask/cancel?all=yes&q={words}")


def _others() -> Iterator[Ask]:
    for name in ("order", "report", "newsletter"):
        yield Ask("others", f"name {name}", f"/names/{name}/")
        yield Ask("others", f"name {name}, poll", f"/names/{name}/", "poll")
    yield Ask("others", "name order 30d", "/names/order/?range=30d")
    yield Ask("others", "name order 399d", f"/names/order/?{A_YEAR}")
    for over, query in RANGES.items():
        yield Ask("others", f"recovery {over}", f"/recovery/?{query}", like="/recovery/?range=30d")
    yield Ask("others", "recovery, poll", "/recovery/", "poll")
    yield Ask("others", "recovery, an old page", "/recovery/?before={oldest_recovery}", like="/recovery/?range=30d")
    yield Ask("others", "workers", "/workers/")
    yield Ask("others", "workers, poll", "/workers/", "poll")
    yield Ask("others", "audit", "/audit/")
    yield Ask("others", "audit, poll", "/audit/", "poll")
    yield Ask("others", "audit, an old page", "/audit/?before={oldest_entry}")
    for words in ("actor=ada", "actor=nobody", "act=revive", "subject=workflow", "subject={short}", "subject=nothing"):
        yield Ask("others", f"audit {words}", f"/audit/?{words}", like="/audit/")
    yield Ask("others", "audit CSV, first byte", "/audit.csv", "csv")


def _admin() -> Iterator[Ask]:
    for table in TABLES:
        yield Ask("admin", f"admin {table}", f"/admin/{table}/", who="ada")
        for query in FILTERED.get(table, ()):
            yield Ask("admin", f"admin {table} {query}", f"/admin/{table}/?{query}", who="ada", like=f"/admin/{table}/")


GROUPS: dict[str, Callable[[], Iterator[Ask]]] = {
    "overview": _overview,
    "charts": _charts,
    "list": _list,
    "search": _search,
    "workflow": _workflow,
    "others": _others,
    "admin": _admin,
    "commands": lambda: iter(()),  # in COMMANDS
    "duties": lambda: iter(()),  # each of them
}


def _typed(*words: str) -> Callable[[], object]:
    def typed() -> None:
        try:
            call_command("rekindle", *words, stdout=StringIO())
        except Refused as refusal:
            raise SystemExit(f"{' '.join(words)} was refused: {refusal}") from refusal

    return typed


COMMANDS: dict[str, Callable[[], object]] = {
    "status": _typed("status"),
    "list": _typed("list"),
    "list --status cancelled": _typed("list", "--status", "cancelled"),
    "list --name year_end": _typed("list", "--name", "year_end"),
    "list --search 'is:late'": _typed("list", "--search", "is:late"),
    "what was late": late.late,
    "what is stuck": late.stuck,
    "what was processed": late.processed,
    "how far behind": late.catch_up,
}


def run_duty(name: str) -> None:
    done = duties.run(name, "scheduled task")
    if done is None or done.error:
        raise SystemExit(f"The duty {name} did not run: {done and done.error}")

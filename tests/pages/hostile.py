"""A world in which everything that somebody else may have written is meant to hurt whoever looks at it."""

import csv
import json
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from recovery.models import AlertRule, MetricMinute
from tests.factories import (
    AlertFactory,
    AuditEntryFactory,
    BatchFactory,
    BatchItemFactory,
    DutyFactory,
    EventFactory,
    NoteFactory,
    PolicyFactory,
    RecoveryFactory,
    SavedViewFactory,
    SignalFactory,
    StepFactory,
    WorkerFactory,
    WorkflowFactory,
    ago,
)
from workflows.models import Worker, Workflow

EVIL = """=1+"'><evil onevil=1>{{evil}}</script><!--"""  # a formula, and an end to whatever it is written into
SHORT = """="'><evil x>"""
SECRET = "hunter2-do-not-show"
VALUE = {EVIL: EVIL, "list": [EVIL], "password": SECRET, "deep": [{"api_token": SECRET, "n": 1}]}
TAG = "<evil onevil=1>"
TRACE = f'  File "/srv/{TAG}/shop.py", line 7, in {TAG}\n    {EVIL}\n'
ERROR = {"type": EVIL, "message": EVIL, "traceback": TRACE}


def build() -> None:
    """One of everything, in every state, with evil in each of its texts."""
    WorkerFactory(host=EVIL, release=EVIL, version=SHORT, knows={EVIL: [1, "f"]}, started_at=ago(minutes=20))
    dead = WorkerFactory(host=f"{EVIL}2", release=f"{EVIL}2", dead=True, last_seen_at=ago(seconds=9), knows={})
    held = {"worker__host": EVIL, "worker__release": EVIL}
    states: list[dict[str, Any]] = [
        {"queued": True},
        {"pending": True},
        {"running": True, **held},
        {"running": True, "asked": {"what": "cancel", "by": EVIL, "at": timezone.now().isoformat()}, **held},
        {"orphan": True, "worker": dead},
        {"released": True, "recoveries": 2, "recovery_attempts": 1},
        {"sleeping": True},
        {"retrying": True},
        {"pended": True, "basket": EVIL},
        {"suspended": True},
        {"blocked": True, "error": ERROR},
        {"in_lane": True, "lane": EVIL},
        {"completed": True, "output": VALUE},
        {"failed": True, "error": ERROR},
        {"failed": True, "error": ERROR | {"discarded": {"by": EVIL, "reason": EVIL}}},
        {"cancelled": True},
    ]
    for n, state in enumerate(states):
        name = EVIL if n % 2 else "three"
        given = {"name": name, "key": f"{EVIL}{n}", "input": VALUE, "variables": VALUE, "due_at": ago(hours=5)}
        one = WorkflowFactory(**given | state)
        fill(one)
    traits: list[dict[str, Any]] = [{}, {"recovered": True}, {"gave_up": True}]
    for n, one in enumerate(Workflow.objects.all()):
        RecoveryFactory(
            workflow_id=one.pk,
            workflow_name=EVIL,
            workflow_key=EVIL,
            worker=dead.pk,
            worker_name=EVIL,
            step=EVIL,
            in_step=True,
            actor=EVIL,
            note=EVIL,
            plan={"kept": 1, "again": [{"name": EVIL}]},
            **traits[n % 3],
        )
    PolicyFactory(name=EVIL, paused=True, changed_by=EVIL, reason=EVIL, mode="observe")
    PolicyFactory(name="*", mode="observe", changed_by=EVIL, reason=EVIL)
    for rule in AlertRule.objects.all()[:2]:
        AlertRule.objects.filter(pk=rule.pk).update(name=f"{SHORT}{rule.pk}", trouble=EVIL, changed_by=EVIL)
        rule.refresh_from_db()
        AlertFactory(rule=rule, details={EVIL: EVIL, "workflows": [EVIL]}, acknowledged_by=EVIL)
    DutyFactory(name="sweep", error=EVIL, note={EVIL: EVIL})
    subject = Workflow.objects.order_by("pk").last()
    for refused in ("", EVIL):
        AuditEntryFactory(
            actor=EVIL,
            act="cancel",
            subject_id=str(subject.pk),
            subject_name=EVIL,
            reason=EVIL,
            refused=refused,
            before={"status": EVIL, "variables": VALUE},
            after={"status": f"{EVIL}!", "variables": VALUE | {"password": f"{SECRET}!"}},
        )
    AuditEntryFactory(actor=EVIL, act=SHORT, subject=SHORT, subject_id=EVIL, subject_name="", reason=EVIL)
    batch = BatchFactory(act="cancel", chosen=EVIL, reason=EVIL, by=EVIL, total=3)
    for one in Workflow.objects.all()[:3]:
        BatchItemFactory(
            batch=batch, workflow_id=one.pk, workflow_name=EVIL, workflow_key=EVIL, result="skipped", sentence=EVIL
        )
        NoteFactory(author=EVIL, subject_id=str(one.pk), subject_name=EVIL, text=EVIL)
    NoteFactory(author=EVIL, subject="worker", subject_id=str(dead.pk), subject_name=EVIL, text=EVIL)
    SavedViewFactory(name=SHORT, owner_name=EVIL, shared=True, search=EVIL)
    for minutes in range(3):
        at = (timezone.now() - timedelta(minutes=minutes + 2)).replace(second=0, microsecond=0)
        MetricMinute.objects.create(name=EVIL, minute=at, completed=3, failed=1, started=4)


def fill(workflow: Workflow) -> None:
    """Steps of each kind, a diary, a letter."""
    StepFactory(workflow=workflow, name=EVIL, result=VALUE)
    StepFactory(workflow=workflow, name=f"{EVIL}2", status="failed", error=ERROR, failures=2)
    StepFactory(workflow=workflow, name=f"{EVIL}3", path=f".{SHORT}.", status="open", attempt=2)
    StepFactory(workflow=workflow, name=EVIL, kind="pend", status="waiting", basket=EVIL)
    for type in ("step.started", "step.failed", "workflow.orphaned", "variables.changed", "signal.sent"):
        data = {"worker": EVIL, "by": EVIL, "error": ERROR, "message": EVIL, "reason": EVIL, "names": [EVIL]} | VALUE
        EventFactory(
            workflow=workflow, type=type, path=".", step=EVIL, attempt=1, data=data, worker=Worker.objects.first().pk
        )
    SignalFactory(workflow=workflow, name=EVIL, uid=f"{EVIL}{workflow.pk}", by=EVIL, data=VALUE)


def boss() -> Client:
    """Somebody who may do everything and calls himself something evil."""
    user = User.objects.create_superuser(EVIL[:150])
    client = Client()
    client.force_login(user)
    return client


class Page(HTMLParser):
    """What a browser would make of a page: every element and attribute that was not written by us is remembered."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.shown: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if "evil" in tag or tag in ("style", "base", "iframe", "object", "embed"):
            self.found.append(f"<{tag}>")
        for name, value in attrs:
            if "evil" in name or name.startswith("on") or name == "style" or not name.replace("-", "").isalnum():
                self.found.append(f"{name}= in <{tag}>")
            where = (value or "").strip().lower()
            if name in ("href", "src", "action", "formaction") and where.startswith(("javascript:", "data:", "//")):
                self.found.append(f"{name}={value!r}")
        if tag == "script" and not dict(attrs).get("src"):
            self.found.append("an inline script")

    def handle_comment(self, data: str) -> None:
        if "evil" in data:
            self.found.append(f"<!--{data}-->")

    def handle_data(self, data: str) -> None:
        self.shown.append(data)


def wrongs(answer: Any) -> list[str]:
    """What is wrong with an answer of any kind, as far as evil goes."""
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    kind, text = answer["Content-Type"].partition(";")[0], body.decode()
    if kind == "text/html":
        return Page(text).found
    if kind == "text/csv":
        return [cell for row in csv.reader(text.splitlines(keepends=True)) for cell in row if _runs(cell)]
    if kind == "application/x-ndjson":
        return [line for line in text.splitlines() if not isinstance(json.loads(line), dict)]
    if kind == "application/json":
        words = [word["text"] for word in _annotations(json.loads(text))]
        return [word for word in words if "<" in word]  # Plotly reads some tags
    return [f"unknown kind {kind}"]


def _runs(cell: str) -> bool:
    """Whether a spreadsheet would calculate it: a formula, and not merely a number."""
    try:
        float(cell)
    except ValueError:
        return cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    return False


def _annotations(figure: Any) -> list[dict[str, Any]]:
    return figure.get("layout", {}).get("annotations", []) if isinstance(figure, dict) else []

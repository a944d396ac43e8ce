"""What a page says of a workflow, or of Rekindle itself: one sentence for every state. Nothing here touches the database."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from recovery.models import Recovery
from recovery.verdict import Kind, Seen, Severity, Told, Whole, of_whole, verdict
from workflows.models import Policy, Step, Worker, Workflow

NOW = datetime(2026, 5, 3, 18, 30, tzinfo=UTC)


def ago(**given):
    return NOW - timedelta(**given)


def ahead(**given):
    return NOW + timedelta(**given)


def worker(**given):
    return Worker(**{"host": "host-2", "pid": 4711, "heartbeat_at": ago(seconds=1)} | given)


def dead(**given):
    return worker(**{"ended_at": ago(seconds=2), "last_seen_at": ago(seconds=3), "ended_why": "died"} | given)


def flow(status, **given):
    given = {"name": "order", "key": "ORD-1", "due_at": ago(minutes=1), "created_at": ago(minutes=1)} | given
    if status in ("completed", "failed", "cancelled"):
        given = {"finished_at": ago(minutes=3)} | given
    return Workflow(status=status, **given)


def step(name, status="done", position=0, **given):
    return Step(name=name, status=status, position=position, **{"began_at": ago(seconds=48), "error": None} | given)


FOUR = [step(name, position=i) for i, name in enumerate(("validate", "load", "reserve", "score"))]
CHARGE = step("charge_card", "open", 4)
RESCUE = Recovery(
    worker_name="host-2:812",
    step="charge_card",
    in_step=True,
    attempt=1,
    max_attempts=3,
    plan={"kept": 4},
    last_seen_at=ago(seconds=3),
    detected_at=ago(seconds=2.5),
)
PAUSED = Policy(name="order", paused=True, changed_by="otto", changed_at=ago(minutes=5), reason="bad deploy")


def queued(**given):
    return flow("queued", wake_at=ago(seconds=4), **given)


def held(**given):
    return flow("running", **{"worker": worker(), "running_at": ago(seconds=50)} | given)


def orphan(**given):
    return flow("running", **{"wake_at": ago(seconds=0.2), "running_at": ago(seconds=60)} | given)


def paused(reason, **given):
    return flow("paused", pause_reason=reason, running_at=ago(seconds=50), **given)


def failed(type, message, **more):
    return flow("failed", error={"type": type, "message": message} | more)


def asked(what):
    return {"what": what, "by": "otto", "at": ago(seconds=4).isoformat(), "reason": "wrong address"}


SENTENCES = [
    (
        "a start in the future",
        Seen(flow("pending", wake_at=ahead(hours=15), created_at=ago(hours=2)), NOW),
        Kind.PENDING,
        "Starts at 09:30 tomorrow. It was asked for 2 h ago and comes by itself, in 15 h.",
    ),
    (
        "due",
        Seen(queued(), NOW),
        Kind.QUEUED,
        "Due now: the next free worker takes it. It has been due for 4.0 s.",
    ),
    (
        "handed back",
        Seen(queued(), NOW, told=Told("workflow.handed_back", ago(seconds=1))),
        Kind.QUEUED,
        "Due now: the next free worker takes it. Its worker was stopped and handed it back; no attempt was burned.",
    ),
    (
        "its name is paused",
        Seen(queued(), NOW, obstacle="policy paused", policy=PAUSED),
        Kind.NAME_PAUSED,
        "Due 4 s ago, and waits: order was paused by otto 5 min ago (bad deploy). It starts when the name is resumed.",
    ),
    (
        "the limit is reached",
        Seen(queued(), NOW, obstacle="limit reached", policy=Policy(name="order", concurrency=5)),
        Kind.LIMITED,
        "Due 4 s ago, and waits: 5 of 5 order run already. It starts when one of them ends or waits.",
    ),
    (
        "nobody has its code",
        Seen(queued(version=2), NOW, obstacle="no worker has this code"),
        Kind.NO_CODE,
        "Blocked: no running worker has the code of order v2. It continues by itself when one starts.",
    ),
    (
        "nobody lives",
        Seen(queued(), NOW, obstacle="no worker has this code", live_workers=0),
        Kind.NO_WORKER,
        "Due 4 s ago, and waits: no worker is alive. Start one: manage.py work.",
    ),
    (
        "it has to run alone",
        Seen(queued(recovery_attempts=2), NOW, obstacle="waits for its turn to run alone"),
        Kind.ALONE,
        "Due 4 s ago, and waits: it runs alone, in a process that holds nothing else. "
        "Its worker died before, so nobody else shall pay for it; it takes its turn.",
    ),
    (
        "every worker is busy",
        Seen(queued(), NOW, obstacle="all workers are busy"),
        Kind.BUSY,
        "Due 4 s ago, and waits: every worker that knows it is busy. "
        "It starts as soon as one of them has a free slot; more workers would take it sooner.",
    ),
    (
        "overdue without a reason",
        Seen(flow("queued", wake_at=ago(minutes=6)), NOW),
        Kind.LATE,
        "Late: it was due 6 min ago and nobody has taken it. "
        "Nothing stands in its way: all slots are busy, or the backlog before it is long.",
    ),
    (
        "in a step",
        Seen(held(), NOW, [*FOUR, CHARGE]),
        Kind.RUNNING,
        "Held by host-2:4711, last heard 1 s ago, in step charge_card for 48 s. "
        "The next step begins when this one ends; if its worker dies, another takes over.",
    ),
    (
        "in a step that failed before, telling its progress",
        Seen(held(progress={"done": 7, "total": 40}), NOW, [step("page", "open", attempt=3, failures=2)]),
        Kind.RUNNING,
        "Held by host-2:4711, last heard 1 s ago, in step page for 48 s. "
        "7 of 40 are done. This is try 3; it failed 2 times before.",
    ),
    (
        "between steps",
        Seen(held(), NOW, FOUR),
        Kind.RUNNING,
        "Held by host-2:4711, last heard 1 s ago, between steps. Its next step begins at once.",
    ),
    (
        "running again after a crash",
        Seen(
            held(running_at=ago(seconds=2.1), worker=worker(host="host-4", pid=99), recovery_attempts=1),
            NOW,
            [*FOUR, step("charge_card", "open", 4, attempt=2)],
            rescue=RESCUE,
        ),
        Kind.RECOVERING,
        "Running again. Worker host-2:812 died 3 s ago; host-4:99 took over 0.9 s later. "
        "4 finished steps were kept. charge_card is running a second time with the same idempotency key. Recovery 1 of 3.",
    ),
    (
        "past its run limit",
        Seen(held(run_limit=30.0), NOW, [CHARGE]),
        Kind.OVERRUNNING,
        "Overrunning: it may run 30 s, and has been running for 50 s, in step charge_card for 48 s. "
        "Nothing is done about it but to say so: look at it, then fail it or let it run.",
    ),
    (
        "past the limit of its policy, which fails it",
        Seen(held(), NOW, [CHARGE], policy=Policy(name="order", run_limit=30.0, on_run_limit="fail")),
        Kind.OVERRUNNING,
        "Overrunning: it may run 30 s, and has been running for 50 s, in step charge_card for 48 s. Its policy fails it.",
    ),
    (
        "its worker is silent",
        Seen(held(worker=worker(heartbeat_at=ago(seconds=40))), NOW, [CHARGE], live_workers=3),
        Kind.SILENT,
        "Silent: host-2:4711 was last heard 40 s ago, in step charge_card for 48 s. "
        "It is declared dead at the next look: 30 s of silence are over. Then another worker takes over.",
    ),
    (
        "its worker's lock is free, and nobody else lives",
        Seen(held(), NOW, locked=False),
        Kind.SILENT,
        "Silent: host-2:4711 was last heard 1 s ago, between steps. Its process has let go of its lock: it is declared "
        "dead at the next look. No other worker lives to take over: start one.",
    ),
    (
        "cancelling",
        Seen(held(asked=asked("cancel")), NOW, [CHARGE]),
        Kind.CANCELLING,
        "Cancelling: otto asked for it 4 s ago (wrong address); host-2:4711 carries it out before its next step. "
        "charge_card has been running for 48 s; its result is kept. No further step begins.",
    ),
    (
        "pausing",
        Seen(held(asked=asked("pause")), NOW),
        Kind.PAUSING,
        "Pausing: otto asked for it 4 s ago (wrong address); host-2:4711 carries it out before its next step. "
        "If its worker dies first, that is carried out by whoever finds it.",
    ),
    (
        "an orphan whose time has come",
        Seen(orphan(), NOW, [*FOUR, CHARGE], rescue=RESCUE),
        Kind.ORPHAN,
        "Orphan: its worker host-2:812 died 3 s ago; recovery 1 of 3 starts now; 4 steps are kept, charge_card runs again "
        "(not declared idempotent). It was lost in charge_card; finished steps do not run again.",
    ),
    (
        "an orphan that waits for its time",
        Seen(
            orphan(wake_at=ahead(seconds=27), recovery_attempts=1),
            NOW,
            [step("charge_card", "open", idempotent=True)],
            rescue=RESCUE,
        ),
        Kind.ORPHAN,
        "Orphan: its worker host-2:812 died 3 s ago; recovery 2 of 3 starts in 27 s; 0 steps are kept, charge_card runs again. "
        "It was lost in charge_card; finished steps do not run again.",
    ),
    (
        "an orphan that waits for its turn",
        Seen(orphan(recovery_attempts=1), NOW, FOUR, obstacle="waits for its turn to run alone"),
        Kind.ORPHAN,
        "Orphan: its worker died 1 min ago; recovery 2 of 3 waits: it runs alone, in a process that holds nothing else; "
        "4 steps are kept, it goes on after score. "
        "Its worker died before, so nobody else shall pay for it; it takes its turn.",
    ),
    (
        "an orphan that will be held for review",
        Seen(orphan(), NOW, [step("charge_card", "open", on_crash="hold")], rescue=RESCUE),
        Kind.ORPHAN,
        "Orphan: its worker host-2:812 died 3 s ago; recovery 1 of 3 starts now; 0 steps are kept, charge_card is held for review in "
        "crash_review (begun, its end is unknown). It was lost in charge_card; finished steps do not run again.",
    ),
    (
        "given up by its worker, past its limit",
        Seen(
            orphan(),
            NOW,
            [*FOUR, CHARGE],
            rescue=Recovery(worker_name="host-2:812", finding="overrunning", detected_at=ago(seconds=2)),
        ),
        Kind.ORPHAN,
        "Orphan: host-2:812 gave it up 2 s ago, past its run limit; recovery 1 of 3 starts now; 4 steps are kept, "
        "charge_card runs again (not declared idempotent). "
        "The next free worker takes it; finished steps do not run again.",
    ),
    (
        "adopted",
        Seen(orphan(running_at=None), NOW, FOUR, told=Told("workflow.adopted", ago(seconds=5))),
        Kind.ORPHAN,
        "Orphan: it was begun elsewhere and adopted 5 s ago; recovery 1 of 3 starts now; 4 steps are kept, "
        "it goes on after score. The next free worker takes it; finished steps do not run again.",
    ),
    (
        "held by a dead worker, only observed",
        Seen(held(worker=dead()), NOW, [*FOUR, CHARGE], mode="observe"),
        Kind.LEFT,
        "Orphan: its worker host-2:4711 died 3 s ago; the mode is observe, so it waits until somebody recovers it. "
        "In this mode orphans are found and shown, not repaired. 4 steps are kept, charge_card runs again (not declared idempotent).",
    ),
    (
        "held by a dead worker, recovery is off",
        Seen(held(worker=dead()), NOW, FOUR, mode="off"),
        Kind.LEFT,
        "Orphan: its worker host-2:4711 died 3 s ago; the mode is off, so it waits until somebody recovers it. "
        "In this mode orphans are not looked for, not repaired. 4 steps are kept, it goes on after score.",
    ),
    (
        "held by a dead worker, with patience",
        Seen(held(worker=dead(), stale_after=30.0), NOW, FOUR),
        Kind.ORPHAN,
        "Orphan: its worker host-2:4711 died 3 s ago; it asks for 30 s of patience, recovery 1 of 3 is due in 27 s. "
        "4 steps are kept, it goes on after score.",
    ),
    (
        "held by a dead worker, all attempts spent",
        Seen(held(worker=dead(), recovery_attempts=3), NOW, FOUR),
        Kind.ORPHAN,
        "Orphan: its worker host-2:4711 died 3 s ago; it is given up at the next look. "
        "4 steps are kept, it goes on after score.",
    ),
    (
        "sleeping",
        Seen(paused("sleep", wake_at=datetime(2026, 5, 4, 9, tzinfo=UTC)), NOW),
        Kind.SLEEPING,
        "Sleeping until 09:00 tomorrow. "
        "It wakes by itself in 14 h and goes on where it stopped; it costs nothing meanwhile.",
    ),
    (
        "retrying",
        Seen(
            paused("retry", wake_at=ahead(seconds=12)),
            NOW,
            [
                step(
                    "charge_card",
                    "waiting",
                    attempt=2,
                    failures=2,
                    wake_at=ahead(seconds=12),
                    error={"type": "TimeoutError", "message": "no answer"},
                )
            ],
        ),
        Kind.RETRYING,
        "Try 3 of charge_card begins in 12 s. It failed twice, last with TimeoutError: no answer.",
    ),
    (
        "in a basket",
        Seen(
            paused("pend", basket="fraud-review"),
            NOW,
            [step("fraud-review", "waiting", kind="pend", basket="fraud-review", began_at=ago(hours=3))],
        ),
        Kind.BASKET,
        "In basket fraud-review for 3 h: a person has to resume it. "
        "Resume it here, perhaps with other variables or a result.",
    ),
    (
        "waiting for a signal, for a limited time",
        Seen(
            paused("pend", basket="signal:approved", wake_at=ahead(hours=2)),
            NOW,
            [step("approved", "waiting", kind="signal", basket="signal:approved", began_at=ago(hours=1))],
        ),
        Kind.SIGNAL,
        "Waiting for the signal approved since 17:30. It goes on when the signal comes. "
        "If nobody comes, its time is over in 2 h.",
    ),
    (
        "in a basket, and forgotten",
        Seen(
            paused("pend", basket="fraud-review"),
            NOW,
            [step("fraud-review", "waiting", kind="pend", basket="fraud-review", began_at=ago(hours=30))],
        ),
        Kind.BASKET,
        "In basket fraud-review for 1 d 6 h: a person has to resume it. "
        "Resume it here, perhaps with other variables or a result.",
    ),
    (
        "held for review, while another path runs",
        Seen(
            held(),
            NOW,
            [step("charge_card", "waiting", path=".a.", basket="crash_review"), step("ship", "open", path=".b.")],
        ),
        Kind.REVIEW,
        "Held for review in crash_review: charge_card went wrong. "
        "Find out, then resume it: to run the step again, or as done if its work was done.",
    ),
    (
        "uncertain",
        Seen(
            paused("pend", basket="crash_review"),
            NOW,
            [step("charge_card", "waiting", basket="crash_review", error={"type": "Crashed", "message": "died"})],
        ),
        Kind.UNCERTAIN,
        "Held for review in crash_review: its worker died in charge_card, and whether it took effect is unknown. "
        "Find out, then resume it: to run the step again, or as done if its work was done.",
    ),
    (
        "suspended",
        Seen(
            paused("suspended"),
            NOW,
            told=Told("workflow.suspended", ago(minutes=9), {"by": "otto", "reason": "freeze"}),
        ),
        Kind.SUSPENDED,
        "Suspended by otto 9 min ago: freeze. It goes on where it stopped when somebody resumes it.",
    ),
    (
        "beyond repair",
        Seen(
            paused("suspended", error={"type": "CorruptState", "message": "step 1 of path . is missing"}),
            NOW,
        ),
        Kind.CORRUPT,
        "Beyond repair: step 1 of path . is missing. Restore it from a backup, or fail it and reopen it with a ticket.",
    ),
    (
        "blocked",
        Seen(
            paused("blocked", error={"message": "the code returned early"}, wake_at=ahead(seconds=40)),
            NOW,
        ),
        Kind.BLOCKED,
        "Blocked: the code returned early. No attempt is burned; it continues by itself when a worker has code that fits. "
        "It is looked at again in 40 s.",
    ),
    (
        "in a lane",
        Seen(paused("lane", lane="customer-42"), NOW),
        Kind.LANE,
        "In lane customer-42: it waits for the one before it. It starts when that one has ended.",
    ),
    (
        "completed",
        Seen(flow("completed", due_at=ago(minutes=3, seconds=7.2), recoveries=1), NOW, FOUR),
        Kind.COMPLETED,
        "Completed 3 min ago, after 7.2 s. "
        "4 steps did their work. It was recovered once on the way; no finished step ran again.",
    ),
    (
        "failed in a step",
        Seen(
            failed("StepFailed", "step charge_card failed: no answer"),
            NOW,
            [step("charge_card", "failed", failures=4, error={"type": "TimeoutError", "message": "no answer"})],
        ),
        Kind.FAILED,
        "Failed 3 min ago in charge_card after 4 tries: TimeoutError: no answer. "
        "It waits for you: revive it to try that step again, run it again from another, or put it aside.",
    ),
    (
        "failed between steps",
        Seen(failed("KeyError", "'total'"), NOW),
        Kind.FAILED,
        "Failed 3 min ago: KeyError: 'total'. "
        "It waits for you: revive it to try that step again, run it again from another, or put it aside.",
    ),
    (
        "failed by hand",
        Seen(
            failed("FailedByHand", "a test order"),
            NOW,
            told=Told("workflow.failed", ago(minutes=3), {"by": "otto"}),
        ),
        Kind.FAILED_BY_HAND,
        "Failed by otto 3 min ago: a test order. What was finished is kept; revive it to go on where it stopped.",
    ),
    (
        "given up",
        Seen(
            flow(
                "failed",
                recovery_attempts=3,
                error={"type": "RecoveryFailed", "message": "…", "open": ["render_pdf"], "completed_steps": ["load"]},
            ),
            NOW,
        ),
        Kind.GIVEN_UP,
        "Given up 3 min ago: it was recovered 3 times, and its worker died again in step render_pdf. "
        "Waiting for you. 1 step is kept; revive it, or put it aside.",
    ),
    (
        "put aside",
        Seen(
            failed("KeyError", "x", discarded={"by": "otto", "reason": "known", "at": ago(minutes=2).isoformat()}),
            NOW,
        ),
        Kind.DISCARDED,
        "Put aside by otto 2 min ago: known. Nobody needs to look at it any more; it can still be revived.",
    ),
    (
        "cancelled",
        Seen(
            flow("cancelled"),
            NOW,
            told=Told("workflow.cancelled", ago(minutes=3), {"by": "otto", "reason": "customer left"}),
        ),
        Kind.CANCELLED,
        "Cancelled by otto 3 min ago: customer left. What was finished is kept; revive it to go on where it stopped.",
    ),
    (
        "reopened",
        Seen(flow("completed"), NOW, successor=UUID(int=7)),
        Kind.REOPENED,
        "Completed 3 min ago, and run again as generation 2. This one is kept as it was; act on the newer one.",
    ),
]


WELL = Whole(NOW, live_workers=2, scheduler_ran=ago(seconds=20), mode="enforce")
OBSERVED = Policy(name="*", mode="observe", changed_by="", changed_at=ago(hours=2), reason="the database moves")
OF_ALL = [
    (
        "nobody lives",
        replace(WELL, live_workers=0),
        Kind.NO_WORKER,
        "No worker is alive: nothing runs until one starts.",
    ),
    (
        "the scheduler is silent",
        replace(WELL, scheduler_ran=ago(minutes=6)),
        Kind.NO_SCHEDULER,
        "Scheduler appears to be down: last run 6 min ago (expected every minute). Workers have taken over its duties.",
    ),
    (
        "only looked at",
        replace(WELL, mode="observe"),
        Kind.NOT_ENFORCED,
        "Recovery is in mode observe: orphans are found and shown, not repaired.",
    ),
    (
        "not even looked at",
        replace(WELL, mode="off"),
        Kind.NOT_ENFORCED,
        "Recovery is in mode off: orphans are not looked for.",
    ),
    (
        "a name is paused",
        replace(WELL, policies=[PAUSED]),
        Kind.NAME_PAUSED,
        "order is paused: new work is accepted and not started, by otto, for 5 min: bad deploy",
    ),
    (
        "every name is only looked at",
        replace(WELL, policies=[OBSERVED]),
        Kind.NOT_ENFORCED,
        "Every name is in mode observe, for 2 h: the database moves",
    ),
]


@pytest.mark.parametrize(("whole", "kind", "sentence"), [pytest.param(*row[1:], id=row[0]) for row in OF_ALL])
def test_rekindle_says_what_is_wrong_with_itself(whole, kind, sentence):
    (said,) = of_whole(whole)

    assert (str(said), said.kind, said.needs_attention) == (sentence, kind, True)


def test_of_what_is_well_nothing_is_said():
    assert of_whole(WELL) == []
    assert of_whole(replace(WELL, scheduler_ran=None)) == []


def test_who_has_read_the_word_is_not_told_it_twice():
    by_name = {row[0]: verdict(row[1]) for row in SENTENCES}

    assert str(by_name["an orphan whose time has come"].why).startswith("Its worker host-2:812 died 3 s ago; ")
    assert str(by_name["given up by its worker, past its limit"].why).startswith("host-2:812 gave it up 2 s ago")
    assert str(by_name["due"].why) == str(by_name["due"])


@pytest.mark.parametrize(("seen", "kind", "sentence"), [pytest.param(*row[1:], id=row[0]) for row in SENTENCES])
def test_a_workflow_says_why_it_is_not_moving_and_what_comes_next(seen, kind, sentence):
    said = verdict(seen)

    assert str(said) == sentence
    assert said.kind == kind


def test_every_kind_has_a_sentence():
    assert {row[2] for row in SENTENCES} | {row[2] for row in OF_ALL} == set(Kind)


def test_what_mends_itself_is_watched_and_what_does_not_asks_for_a_person():
    by_name = {row[0]: verdict(row[1]).severity for row in SENTENCES}

    assert by_name["an orphan whose time has come"] == Severity.WATCH
    assert by_name["given up"] == Severity.ACT
    assert by_name["held by a dead worker, only observed"] == Severity.ACT
    assert by_name["in a step"] == Severity.CALM
    assert by_name["in a basket"] == Severity.CALM
    assert by_name["in a basket, and forgotten"] == Severity.ACT
    assert by_name["held for review, while another path runs"] == Severity.ACT
    assert not verdict(SENTENCES[0][1]).needs_attention


def test_without_steps_it_still_has_something_to_say():
    for _, seen, _, _ in SENTENCES:
        assert str(verdict(Seen(seen.workflow, NOW)))

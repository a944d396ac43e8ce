"""What has ended runs again as a new generation: the old one is frozen, what is kept is read, the rest is done."""

import io
import json
import signal
import subprocess
import sys
import threading
from itertools import groupby

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from workflows import Run, cancel, fail, pause, reopen, rerun_from, revive, start, workflow
from workflows.errors import BadInput, BadValue, Fenced, Refused
from workflows.executing import execute
from workflows.models import Event, Step, Workflow
from workflows.paths import Alone
from workflows.testing import Rehearsal, rehearse

from . import flows
from .hands import done, hands

pytestmark = pytest.mark.django_db
SIGNED = {"by": "ann", "reason": "once more"}
ALL = ["load", "f1", "f2", "s1", "s2", "bill", "last", "mail"]
broken: set[str] = set()  # steps that raise


def work(word):
    if word in broken:
        raise ValueError(word)
    return flows.note(word)


@workflow("journey", search=("customer",))
def journey(run: Run, customer: str = "c"):
    def branch(*names):
        return lambda run: [run.step(work, name, name=name) for name in names]

    run.step(lambda: [run.set(limit=5), work("load")][1], name="load")
    checks = run.parallel("checks", fraud=branch("f1", "f2"), stock=branch("s1", "s2"))
    bill = run.step(work, "bill", name="bill")
    tail = run.parallel("checks", only=branch("last"))
    return [*checks, bill, *tail, run.step(work, "mail", name="mail")]


@journey.ticket("undo")
def undo(run: Run, customer: str = "c"):
    run.step(work, "undone", name="undone")
    return [run.generation, run.variables.get("limit"), run.step(work, "told", name="told")]


@pytest.fixture(autouse=True)
def ledger():
    flows.calls.clear()
    broken.clear()
    yield flows.calls
    check_diaries_and_steps()


def check_diaries_and_steps():
    """I5: events 1..n without gap; and replay needs each path to begin at 0 and to have no gap."""
    for one in Workflow.objects.all():
        assert [event.seq for event in one.events.order_by("seq")] == list(range(1, one.seq + 1))
        steps = one.steps.exclude(status="dropped").order_by("path", "position")
        for path, here in groupby(steps, key=lambda step: step.path):
            assert [step.position for step in here] == list(range(one.steps.filter(path=path).count())), path


def ended(status="completed", **options):
    """A journey that has ended so."""
    rehearsal = Rehearsal(start("journey", {"customer": "A"}, **options))
    if status == "cancelled":
        cancel(rehearsal.workflow.pk, by="ann")
    elif status == "failed":
        broken.add("bill")
        rehearsal.to_end()
        broken.clear()
    elif status == "blocked":
        rehearsal.to_end()
        Workflow.objects.update(
            status="paused", pause_reason="blocked", wake_at="2099-01-01T00:00Z", finished_at=None, error={"type": "B"}
        )
    else:
        rehearsal.to_end()
    rehearsal.workflow.refresh_from_db()
    flows.calls.clear()
    return rehearsal


def columns(one):
    return {field.attname: getattr(one, field.attname) for field in Workflow._meta.concrete_fields}


def diary(one):
    return list(Event.objects.filter(workflow=one).order_by("seq").values_list("type", flat=True))


# -- reopen ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_what_has_ended_is_reopened_at_a_ticket_and_the_old_generation_is_frozen(ledger, status):
    """S3-096, S3-119, S3-122, C39, C51."""
    rehearsal = ended(status, key="K")
    old = rehearsal.workflow
    before, steps = columns(old), list(old.steps.values())

    new = rehearsal.reopen("undo", **SIGNED)

    assert (new.name, new.key, new.generation, new.previous, new.fence) == ("journey", "K", 2, old.pk, 0)
    assert (new.status, new.ticket, new.input, new.search) == ("queued", "undo", {"customer": "A"}, ["customer=A"])
    assert rehearsal.to_end().output == [2, old.variables.get("limit"), "told"]
    assert ledger == ["undone", "told"]

    old = Workflow.objects.get(pk=old.pk)
    assert columns(old) == before | {"seq": before["seq"] + 1}
    assert list(old.steps.values()) == steps
    assert old.successor == new.pk
    told = old.events.last()
    assert (told.type, told.data) == ("workflow.reopened", {"next": str(new.pk), "ticket": "undo", **SIGNED})
    first = new.events.first()
    assert (first.type, first.data) == ("workflow.queued", {"previous": str(old.pk), "ticket": "undo", **SIGNED})


def test_what_is_blocked_can_be_reopened_and_ends_as_failed_by_it():
    """C39: from a corrupt state."""
    rehearsal = ended("blocked")
    old = rehearsal.workflow

    rehearsal.reopen("undo", **SIGNED)

    assert rehearsal.to_end().status == "completed"
    old.refresh_from_db()
    assert (old.status, old.error) == ("failed", {"type": "B"})
    assert diary(old)[-2:] == ["workflow.failed", "workflow.reopened"]


def test_what_is_alive_is_not_reopened():
    alive = start("journey")

    with pytest.raises(Refused, match=r"\(queued\): it has not ended; cancel or fail it first\.$"):
        reopen(alive.pk, "undo", **SIGNED)

    assert Workflow.objects.count() == 1


def test_a_ticket_that_the_definition_does_not_have_is_refused_with_those_it_has():
    """S3-119."""
    rehearsal = ended()

    with pytest.raises(Refused, match=r"has no such ticket\. It has: undo\."):
        rehearsal.reopen("redo")


def test_with_a_basket_it_pends_first_and_goes_on_when_a_person_resumes_it(ledger):
    """B11: pend first."""
    rehearsal = ended()

    waiting = rehearsal.reopen("undo", basket="desk")

    assert (waiting.status, waiting.pause_reason, waiting.basket, waiting.wake_at) == ("paused", "pend", "desk", None)
    assert rehearsal.to_end().status == "paused"
    assert ledger == []
    rehearsal.resume(basket="desk", variables={"limit": 7}, by="bob")
    assert rehearsal.to_end().output == [2, 7, "told"]
    assert diary(waiting)[:3] == ["workflow.paused", "pend.resumed", "workflow.resume_asked"]


def test_a_suspended_one_that_is_resumed_still_pends_first(ledger):
    rehearsal = ended()
    rehearsal.reopen("undo", basket="desk")
    pause(rehearsal.workflow.pk)

    rehearsal.resume()

    waiting = rehearsal.to_end()
    assert (waiting.status, waiting.basket, ledger) == ("paused", "desk", [])
    rehearsal.resume(basket="desk")
    assert rehearsal.to_end().status == "completed"


def test_new_variables_are_merged_and_keep_their_types():
    """B11: optional new variables."""
    rehearsal = ended()

    with pytest.raises(BadValue, match="limit is a LONG"):
        rehearsal.reopen("undo", variables={"limit": "many"})
    new = rehearsal.reopen("undo", variables={"limit": 6, "more": "x"})

    assert new.variables == {"limit": 6, "more": "x"}


def test_input_that_no_longer_fits_is_refused_at_once():
    rehearsal = ended()
    Workflow.objects.update(input={"size": 1})

    with pytest.raises(BadInput):
        rehearsal.reopen("undo")
    with pytest.raises(BadInput):
        rehearsal.rerun_from("bill")


def test_only_the_newest_generation_comes_to_life_again():
    """C39: frozen for audit."""
    rehearsal = ended("failed")
    old = rehearsal.workflow
    new = rehearsal.reopen("undo")
    rehearsal.to_end()

    for act in (
        lambda: reopen(old.pk, "undo", **SIGNED),
        lambda: rerun_from(old.pk, "load", **SIGNED),
        lambda: revive(old.pk, **SIGNED),
    ):
        with pytest.raises(Refused, match=f"it was reopened as {new.pk}; act on that one"):
            act()
    assert rehearsal.reopen("undo").generation == 3


def test_the_same_key_stands_for_the_newest_generation():
    """C51: the key is started again as a new generation; until then it is what it was."""
    rehearsal = ended(key="K")
    assert start("journey", {"customer": "A"}, key="K").pk == rehearsal.workflow.pk

    new = rehearsal.rerun_from()

    assert start("journey", {"customer": "A"}, key="K").pk == new.pk
    assert rehearsal.to_end().generation == 2


def test_without_a_key_generations_are_counted_all_the_same():
    rehearsal = ended()
    first = rehearsal.workflow

    assert [rehearsal.rerun_from().generation, rehearsal.workflow.previous] == [2, first.pk]


def test_messages_that_nobody_has_read_come_along():
    rehearsal = rehearse("journey")
    rehearsal.signal("letter", 1, uid="one")
    rehearsal.to_end()

    new = rehearsal.reopen("undo")

    assert list(new.inbox.values_list("name", "data", "uid")) == [("letter", 1, "one")]


# -- rerun ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "path", "occurrence", "again"),
    [
        ("", ".", 1, ALL),
        ("load", ".", 1, ALL),
        ("checks", ".", 1, ALL[1:]),
        ("f1", ".checks.fraud.", 1, ["f1", "f2", "bill", "last", "mail"]),
        ("f2", ".checks.fraud.", 1, ["f2", "bill", "last", "mail"]),
        ("s1", ".checks.stock.", 1, ["s1", "s2", "bill", "last", "mail"]),
        ("bill", ".", 1, ["bill", "last", "mail"]),
        ("checks", ".", 2, ["last", "mail"]),
        ("last", ".checks~2.only.", 1, ["last", "mail"]),
        ("mail", ".", 1, ["mail"]),
    ],
)
def test_the_chosen_step_and_all_after_it_run_again_what_lies_before_is_kept(ledger, step, path, occurrence, again):
    """Design 4, Operators; B11 for the names of paths."""
    rehearsal = ended()
    old = rehearsal.workflow

    new = rehearsal.rerun_from(step, path=path, occurrence=occurrence, **SIGNED)
    kept = new.steps.filter(status="done", kind="step")

    assert {one.name for one in kept} == set(ALL) - set(again)
    assert new.events.first().data["previous"] == str(old.pk)
    assert rehearsal.to_end().output == old.output
    assert ledger == again
    assert new.steps.count() == old.steps.count()
    assert set(new.steps.values_list("fence", flat=True)) == {0, 1} - ({0} if again == ALL else set())


@pytest.mark.parametrize("cut", [True, False])
def test_from_whichever_step_it_is_run_again_it_comes_to_the_same_end(cut):
    """Blocks within blocks, cut off in the middle or run to the end: nothing that is kept contradicts the code."""
    rehearsal = rehearse("fan")
    rehearsal.turn()
    if cut:
        cancel(rehearsal.workflow.pk)
    rehearsal.to_end()
    chosen = list(rehearsal.workflow.steps.order_by("pk").values("path", "name", "occurrence"))
    assert len(chosen) >= 6

    for step in chosen:
        rehearsal.rerun_from(step["name"], path=step["path"], occurrence=step["occurrence"])
        assert rehearsal.to_end().output == ["t:l2", ["t:a", "t:b"], "t:again"], step


@pytest.mark.parametrize("after", range(1, 5))
def test_a_generation_that_keeps_steps_comes_back_after_a_crash(ledger, after):
    rehearsal = ended("failed")
    rehearsal.rerun_from("f2", path=".checks.fraud.")
    rehearsal.crash_after(after)

    finished = rehearsal.to_end()

    assert finished.status == "completed"
    assert ledger == ["f2", "bill", "last", "mail"]


def test_a_failure_that_ended_another_branch_is_tried_anew(ledger):
    broken.update(["f2", "s1"])
    rehearsal = rehearse("journey")
    rehearsal.to_end()
    ledger.clear()
    broken.clear()

    rehearsal.rerun_from("f1", path=".checks.fraud.")

    assert rehearsal.to_end().status == "completed"
    assert ledger == ["f1", "f2", "s1", "s2", "bill", "last", "mail"]


@workflow("left carefully")
def careful(run: Run):
    def pay(run: Run):
        return run.step(work, "pay", name="pay", on_crash="hold")

    def ask(run: Run):
        return run.pend("desk")

    def stop(run: Run):
        run.step(work, "look", name="look")
        if not run.variables.get("calm"):
            run.ticket("leave")

    return run.parallel("all", stop=stop, pay=pay, ask=ask)


@careful.ticket("leave")
def leave(run: Run):
    run.step(work, "clean", name="clean")
    return run.step(work, "left", name="left")


def test_a_step_of_another_branch_that_may_have_taken_effect_is_judged_as_after_a_crash(ledger):
    """C32: its author said hold; running another branch again does not overrule that."""
    rehearsal = rehearse("left carefully")
    rehearsal.to_end()
    one = rehearsal.workflow
    Step.objects.create(
        workflow=one, path=".all.pay.", position=0, name="pay", status="dropped", on_crash="hold", attempt=1
    )

    rehearsal.rerun_from("look", path=".all.stop.", variables={"calm": True})
    rehearsal.to_end()

    assert "pay" not in ledger
    held = Step.objects.filter(workflow=rehearsal.workflow, status="waiting").values_list("name", "basket")
    assert set(held) == {("pay", "crash_review"), ("desk", "desk")}


def test_what_waits_in_another_branch_waits_on(ledger):
    """C11: its deadline was written once."""
    rehearsal = rehearse("fan")
    rehearsal.turn()
    cancel(rehearsal.workflow.pk, by="ann")
    waits = Step.objects.get(kind="sleep")

    new = rehearsal.rerun_from("a", path=".fan.right.inner.a.")

    kept = new.steps.get(kind="sleep")
    assert (kept.status, kept.wake_at) == ("waiting", waits.wake_at)
    assert new.steps.get(name="inner").status == "open"
    assert rehearsal.to_end().output == ["t:l2", ["t:a", "t:b"], "t:again"]
    assert ledger == ["t:l1", "t:a", "t:b", "t:a", "t:l2", "t:again"]


def test_a_handler_is_run_again_from_one_of_its_steps(ledger):
    rehearsal = rehearse("left carefully")
    rehearsal.to_end()
    ledger.clear()

    new = rehearsal.rerun_from("left", path=".!leave.")

    assert new.ticket == "leave"
    assert rehearsal.to_end().output == "left"
    assert ledger == ["left"]
    assert new.steps.filter(name="look", status="done").exists()


def test_what_lies_before_a_ticket_is_run_again_without_it(ledger):
    rehearsal = rehearse("left carefully")
    rehearsal.to_end()
    ledger.clear()

    new = rehearsal.rerun_from("all")

    assert (new.ticket, new.steps.count()) == ("", 0)
    assert rehearsal.to_end().output == "left"
    assert ledger == ["look", "clean", "left"]


def test_a_reopened_generation_is_run_again_from_its_own_top(ledger):
    rehearsal = ended()
    rehearsal.reopen("undo", basket="desk")
    rehearsal.resume()
    rehearsal.to_end()

    rehearsal.rerun_from()
    assert rehearsal.to_end().output == [3, 5, "told"]
    rehearsal.rerun_from("told", path=".!undo.")
    assert rehearsal.to_end().output == [4, 5, "told"]

    assert ledger == ["undone", "told"] * 2 + ["told"]
    with pytest.raises(Refused, match="no such step is recorded"):
        rehearsal.rerun_from("desk", path=".reopened.")


def test_a_step_that_was_never_recorded_is_refused_with_those_that_are():
    rehearsal = ended()

    with pytest.raises(Refused, match=r"from \.checks~3: no such step.*\.load, .*\.checks~2, .*\.mail\.$"):
        rehearsal.rerun_from("checks", occurrence=3)
    with pytest.raises(Refused, match="no such step"):
        rehearsal.rerun_from("f1")
    assert Workflow.objects.count() == 1


def test_what_is_alive_is_not_run_again():
    alive = start("journey")

    with pytest.raises(Refused, match="cancel or fail it first"):
        rerun_from(alive.pk, "load", **SIGNED)


@pytest.mark.parametrize("name", ["", "a.b", "a~2", "x" * 71])
def test_a_name_that_would_not_fit_into_a_path_is_no_tickets_name(name):
    with pytest.raises((ValueError, BadValue), match=r"cannot name a ticket|at most 70 are stored"):
        journey.ticket(name)


# -- death, rivals, late writers --------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("act", ["reopen(pk, 'undo', **signed)", "rerun_from(pk, 'bill', **signed)"])
def test_a_process_that_is_killed_in_the_middle_leaves_nothing(outside, act):
    """I6: killed after its last write, before the commit."""
    old = ended().workflow
    before = columns(old)
    program = f"""
import django, os, signal
django.setup()
from django.db import transaction
from workflows import reopen, rerun_from
pk, signed = "{old.pk}", dict(by="ann", reason="")
with transaction.atomic():
    {act}
    os.kill(os.getpid(), signal.SIGKILL)
"""

    died = subprocess.run(
        [sys.executable, "-c", program], env=outside | {"REKINDLE_MODULES": __name__}, timeout=60, capture_output=True
    )

    assert died.returncode == -signal.SIGKILL, died.stderr
    old = Workflow.objects.get()
    assert columns(old) == before
    assert old.successor is None
    assert reopen(old.pk, "undo", **SIGNED).generation == 2


@pytest.mark.django_db(transaction=True)
def test_of_two_operators_one_wins_and_the_other_gets_a_sentence():
    """Faults: two operators at once."""
    old = ended().workflow
    answers = []
    gate = threading.Barrier(4)

    def operate(act):
        gate.wait()
        try:
            answers.append(act().pk)
        except Refused as refusal:
            answers.append(str(refusal))
        connection.close()

    acts = [lambda: reopen(old.pk, "undo", **SIGNED), lambda: rerun_from(old.pk, "bill", **SIGNED)] * 2
    threads = [threading.Thread(target=operate, args=[act]) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    new = Workflow.objects.exclude(pk=old.pk).get()
    assert sorted(answer == new.pk for answer in answers) == [False, False, False, True]
    assert all(f"reopened as {new.pk}" in answer for answer in answers if answer != new.pk)


@pytest.mark.django_db(transaction=True)
def test_a_late_writer_of_the_old_generation_reaches_neither():
    """I3."""
    old = start("journey")
    with hands() as claimer:
        held = claimer.claim(1)[0]
        fail(old.pk, **SIGNED)
        new = reopen(old.pk, "undo", **SIGNED)

        with pytest.raises(Fenced):
            held.write(step=done(held, "load"), event="step.completed")

        assert not Step.objects.exists()
        claimed = claimer.claim(1)[0]
        assert (claimed.id, claimed.fence, claimed.ticket) == (new.pk, 1, "undo")


@pytest.mark.django_db(transaction=True)
def test_a_worker_on_connections_of_its_own_reads_what_is_kept(ledger):
    old = ended().workflow
    new = rerun_from(old.pk, "f2", path=".checks.fraud.", **SIGNED)

    with hands() as claimer:
        assert execute(claimer.claim(1)[0], Alone()) == "completed"

    assert ledger == ["f2", "bill", "last", "mail"]
    new.refresh_from_db()
    assert new.output == old.output


# -- the command line -------------------------------------------------------------------------------------------------


def say(*words):
    out = io.StringIO()
    call_command("rekindle", *map(str, words), "--json", stdout=out)
    return json.loads(out.getvalue())


def test_reopen_from_the_command_line_prints_the_new_row():
    """S3-096."""
    old = ended().workflow

    new = say("reopen", old.pk, "--ticket", "undo", "--basket", "desk", "--variables", '{"limit": 1}', "--reason", "r")

    assert (new["previous"], new["basket"], new["variables"]) == (str(old.pk), "desk", {"limit": 1})
    assert old.events.last().data["by"].startswith("cli:")


def test_rerun_from_the_command_line_prints_the_new_row():
    old = ended().workflow

    new = say("rerun", old.pk, "--from", "f2", "--path", ".checks.fraud.", "--reason", "r")

    assert (new["previous"], new["status"]) == (str(old.pk), "queued")
    assert Step.objects.filter(workflow=new["id"], name="s2").exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("reopen", "--ticket", "redo"), 1),
        (("reopen", "--ticket", "a\0b"), 1),
        (("reopen", "--ticket", "undo", "--basket", "x" * 81), 2),
        (("rerun", "--from", "nothing"), 1),
        (("rerun", "--from", "a\0b", "--path", "\udcff"), 1),
        (("rerun", "--variables", "[]"), 2),
    ],
)
def test_what_is_refused_on_the_command_line_is_one_sentence(words, code):
    old = ended().workflow
    verb, *options = words

    with pytest.raises(CommandError) as refusal:
        say(verb, old.pk, *options)

    assert refusal.value.returncode == code
    assert "\n" not in str(refusal.value)
    assert Workflow.objects.count() == 1

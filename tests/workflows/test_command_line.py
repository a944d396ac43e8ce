"""The command line: each verb does one thing, and whatever is wrong is one sentence and an exit code."""

import io
import json
import os
import re
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.db.models.functions import Now
from django_q.models import Schedule

from recovery import commands as recovery_commands
from recovery import schedules
from tests.project.waiting import eventually
from workflows import Run, start, workflow
from workflows.commands import VERBS, doctor
from workflows.commands.asking import number
from workflows.commands.table import clean, table
from workflows.models import Event, Policy, Signal, Status, Step, Worker, Workflow

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[2]


@workflow("parcel")
def parcel(run: Run, number: int = 0, note: Any = None) -> str:
    return f"parcel {number}"


def say(*words: object) -> str:
    out = io.StringIO()
    call_command("rekindle", *map(str, words), stdout=out)
    return out.getvalue().strip()


def say_json(*words: object) -> Any:
    return json.loads(say(*words, "--json"))


def refused(code: int, *words: object) -> str:
    """The one sentence with which the words are refused."""
    with pytest.raises(CommandError) as caught:
        say(*words)
    sentence = str(caught.value)
    assert caught.value.returncode == code, sentence
    assert "\n" not in sentence
    assert len(sentence) <= 600
    return sentence


def manage(environment: dict[str, str], *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env=environment | {"REKINDLE_MODULES": __name__},
        capture_output=True,
        text=True,
        timeout=60,
        **more,
    )


@pytest.fixture
def one() -> Workflow:
    return start("parcel", {"number": 1})


@pytest.fixture
def failed(one: Workflow) -> Workflow:
    say("fail", one.pk, "--reason", "broken")
    return one


def hold(one: Workflow, **worker: Any) -> Worker:
    holder = Worker.objects.create(host="a", pid=1, **worker)
    Workflow.objects.filter(pk=one.pk).update(status=Status.RUNNING, worker=holder, wake_at=None, running_at=Now())
    return holder


def pend(one: Workflow, basket: str) -> Step:
    Workflow.objects.filter(pk=one.pk).update(
        status=Status.PAUSED, pause_reason="pend", basket=basket, wake_at=None, running_at=Now()
    )
    return Step.objects.create(workflow=one, position=0, name="ask", kind="pend", status="waiting", basket=basket)


def last_event(one: Workflow) -> Event:
    return Event.objects.filter(workflow=one.pk).order_by("seq").last()


# -- start ----------------------------------------------------------------------------------------------------------


def test_start_prints_the_id_of_what_it_started():
    pk = UUID(say("start", "parcel", "--input", '{"number": 7}', "--priority", "high"))

    stored = Workflow.objects.get(pk=pk)
    assert (stored.name, stored.input, stored.priority) == ("parcel", {"number": 7}, 1)


def test_start_at_a_time_that_lies_ahead_is_pending():
    found = say_json("start", "parcel", "--at", "2099-01-01T00:00:00+02:00")

    assert found["status"] == "pending"
    assert found["due_at"] == "2098-12-31T22:00:00+00:00"


@pytest.mark.parametrize("at", ["tomorrow", "2099-01-01T00:00:00", "9999-12-31T23:59:59-12:00", "infinity", ""])
def test_a_time_that_is_none_is_refused(at):
    refused(2, "start", "parcel", "--at", at)

    assert not Workflow.objects.exists()


def test_the_same_key_and_input_is_the_same_workflow():
    words = ("start", "parcel", "--key", "P-1", "--input", '{"number": 1}')

    assert say(*words) == say(*words)
    assert Workflow.objects.count() == 1


def test_a_key_used_again_with_other_input_is_refused():
    say("start", "parcel", "--key", "P-1", "--input", '{"number": 1}')

    assert "other input" in refused(1, "start", "parcel", "--key", "P-1", "--input", '{"number": 2}')
    assert Workflow.objects.count() == 1


BAD = {
    "ten megabytes": '{"note": "' + "x" * 10_000_000 + '"}',
    "more than is stored": '{"note": "' + "x" * 1_000_001 + '"}',
    "a hundred thousand lists deep": '{"note": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "a hundred thousand objects deep": '{"note": ' * 100_000 + "1" + "}" * 100_000,
    "a little too deep": '{"note": ' + "[" * 101 + "]" * 101 + "}",
    "NUL": r'{"note": "a\u0000b"}',
    "NUL in a name": r'{"\u0000": 1}',
    "a lone surrogate": r'{"note": "\ud800"}',
    "a byte that is no text": '{"note": "\udcff"}',
    "NaN": '{"note": NaN}',
    "infinity": '{"note": -Infinity}',
    "1e400": '{"note": 1e400}',
    "five thousand digits": '{"note": ' + "9" * 5000 + "}",
    "duplicate keys": '{"note": 1, "note": 2}',
    "duplicate keys within": '{"note": {"a": 1, "a": 2}}',
    "no JSON": "{note: 1}",
    "nothing": "",
    "a list": "[]",
    "null": "null",
    "zero": "0",
    "an argument that is not taken": '{"weight": 1}',
    "an argument with a very long name": '{"' + "x" * 100_000 + '": 1}',
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_sentence_and_nothing_is_stored(text):
    """S0: input of 10 MB, depth 100,000, NUL, lone surrogates, NaN, 1e400, duplicate keys."""
    sentence = refused(2, "start", "parcel", "--input", text)

    assert sentence.endswith((".", "…"))
    assert not Workflow.objects.exists()


@pytest.mark.parametrize("name", ["parcels", "", "x" * 101, "a\0b", "\udcff", "\x1b[31m"])
def test_an_unknown_workflow_is_refused(name):
    sentence = refused(2, "start", name)

    assert "\x1b" not in sentence
    assert not Workflow.objects.exists()


@pytest.mark.parametrize("key", ["x" * 201, "a\0b", "\udcff"])
def test_a_key_that_cannot_be_stored_is_refused(key):
    refused(2, "start", "parcel", "--key", key)

    assert not Workflow.objects.exists()


# -- list and show --------------------------------------------------------------------------------------------------


def test_list_shows_the_newest_first_and_no_more_than_asked_for():
    old, new = start("parcel", {"number": 1}), start("parcel", {"number": 2})

    assert [row["id"] for row in say_json("list")] == [str(new.pk), str(old.pk)]
    assert [row["id"] for row in say_json("list", "--limit", "1")] == [str(new.pk)]
    assert str(old.pk) in say("list", "--name", "parcel", "--status", "queued")
    assert say("list", "--status", "failed") == "No workflows."


@pytest.mark.parametrize("words", [("--limit", "0"), ("--limit", "1001"), ("--limit", "x"), ("--status", "lost")])
def test_list_refuses_what_it_cannot_mean(words):
    with pytest.raises(CommandError):
        say("list", *words)


def test_list_refuses_a_name_that_is_no_text():
    refused(2, "list", "--name", "\udcff")


def test_show_tells_everything_about_a_workflow(one):
    say("signal", one.pk, "paid", "--data", '{"cents": 5}', "--uid", "u1")
    Step.objects.create(workflow=one, position=0, name="weigh", status="done", result={"grams": 12})

    found, text = say_json("show", one.pk), say("show", one.pk)

    assert (found["id"], found["status"], found["input"]) == (str(one.pk), "queued", {"number": 1})
    assert found["steps"][0]["result"] == {"grams": 12}
    assert [event["type"] for event in found["events"]] == ["workflow.queued", "signal.sent"]
    assert found["inbox"][0]["data"] == {"cents": 5}
    for word in (str(one.pk), "weigh", "grams", "signal.sent", "paid", "no worker has this code"):
        assert word in text


def test_show_says_why_nobody_takes_it(one):
    why = lambda: say_json("show", one.pk)["why_not_claimed"]  # noqa: E731

    assert why() == "It is due, but no worker has this code."
    Worker.objects.create(host="a", pid=1, knows={"parcel": [1, "f"]})
    assert why() is None
    Policy.objects.create(name="parcel", paused=True)
    assert why() == "It is due, but policy paused."
    Workflow.objects.filter(pk=one.pk).update(wake_at=Now() + timedelta(hours=1))
    assert why().startswith("It is not due before ")
    say("pause", one.pk)
    assert why() == "It waits until it is resumed."
    say("cancel", one.pk)
    assert why() == "It has ended (cancelled)."


def test_show_says_that_an_orphan_waits_for_a_sweep(one):
    hold(one, ended_at=Now())

    assert say_json("show", one.pk)["why_not_claimed"] == "Its worker a:1 has ended; a sweep will release it."


def test_an_id_may_be_given_by_its_beginning_or_its_end(one):
    text = str(one.pk)

    for part in (text, text.replace("-", ""), text.upper(), text[:30], text[-12:], text[-8:], text[-14:]):
        assert say_json("show", part)["id"] == text


def test_an_id_that_could_be_two_is_refused(one):
    start("parcel")

    assert "several" in refused(1, "show", str(one.pk)[:8])


@pytest.mark.parametrize("verb", ["show", "cancel", "fail", "pause", "resume", "revive", "recover", "discard"])
def test_what_is_not_there_is_not_found(verb):
    refused(3, verb, uuid4())
    refused(3, verb, "ffffffff")
    refused(3, verb, "nonsense")
    refused(3, verb, "\0\x1b")


def test_a_piece_of_an_id_that_is_too_short_is_refused():
    assert "at least 8" in refused(2, "show", "0199")


# -- acts -----------------------------------------------------------------------------------------------------------


def test_an_act_is_signed_and_its_reason_is_in_the_diary(one, monkeypatch):
    monkeypatch.setenv("LOGNAME", "ada")

    text = say("cancel", one.pk, "--reason", "ordered twice")

    assert text.endswith("is cancelled.")
    assert last_event(one).data == {"by": "cli:ada", "reason": "ordered twice"}


def test_a_held_workflow_is_asked(one):
    hold(one)

    assert "pause is asked of its worker" in say("pause", one.pk)
    assert say_json("cancel", one.pk)["asked"]["what"] == "cancel"


def test_pause_and_resume(one):
    assert say_json("pause", one.pk)["status"] == "paused"
    assert say_json("resume", one.pk)["status"] == "queued"


def test_fail_and_revive_and_discard(one):
    assert say_json("fail", one.pk, "--reason", "broken")["error"]["message"] == "broken"
    assert say_json("revive", one.pk)["status"] == "queued"

    say("fail", one.pk)

    assert say_json("discard", one.pk, "--reason", "old")["error"]["discarded"]["reason"] == "old"


def test_recover_revives_what_failed_and_releases_an_orphan(failed):
    assert say_json("recover", failed.pk)["status"] == "queued"

    hold(failed, ended_at=Now())

    assert say_json("recover", failed.pk)["worker_id"] is None
    assert last_event(failed).type == "workflow.orphaned"


def test_resume_answers_a_pend_with_variables_and_a_result(one):
    step = pend(one, "review")

    assert "nothing of it waits" in refused(1, "resume", one.pk, "--basket", "other")
    found = say_json(
        "resume", one.pk, "--basket", "review", "--variables", '{"ok": true}', "--result", '"yes"', "--done"
    )

    step.refresh_from_db()
    assert (found["status"], found["variables"]) == ("queued", {"ok": True})
    assert (step.status, step.result) == ("done", "yes")


@pytest.mark.parametrize(
    "words", [("--variables", "[]"), ("--variables", "{"), ("--result", "NaN"), ("--reason", "\0")]
)
def test_resume_refuses_bad_input_and_changes_nothing(one, words):
    pend(one, "review")

    refused(2, "resume", one.pk, *words)

    assert Workflow.objects.get(pk=one.pk).status == Status.PAUSED


@pytest.mark.parametrize("reason", ["x" * 501, "a\0b", "\udcff"])
def test_a_reason_that_cannot_be_stored_is_refused(one, reason):
    refused(2, "cancel", one.pk, "--reason", reason)

    assert Workflow.objects.get(pk=one.pk).status == Status.QUEUED


@pytest.mark.parametrize("verb", ["cancel", "fail", "pause", "resume", "recover", "revive", "discard"])
def test_a_refused_act_says_why(one, verb):
    Workflow.objects.filter(pk=one.pk).update(status=Status.COMPLETED, wake_at=None, finished_at=Now())

    assert refused(1, verb, one.pk).startswith("Cannot ")


def test_a_signal_with_the_same_uid_counts_once(one):
    assert say_json("signal", one.pk, "paid", "--data", "[1]", "--uid", "u1")["sent"] is True
    assert "already" in say("signal", one.pk, "paid", "--data", "[2]", "--uid", "u1")
    assert Signal.objects.get().data == [1]


@pytest.mark.parametrize(
    "words", [("paid", "--data", "NaN"), ("x" * 81,), ("a\0b",), ("paid", "--uid", "x" * 201), ("paid", "--uid", "\0")]
)
def test_a_signal_that_cannot_be_stored_is_refused(one, words):
    refused(2, "signal", one.pk, *words)

    assert not Signal.objects.exists()


def test_nothing_is_sent_to_what_has_ended(failed):
    assert "ended" in refused(1, "signal", failed.pk, "paid")


# -- status and doctor ----------------------------------------------------------------------------------------------


@pytest.fixture
def alive():
    """Makes workers that hold their locks, as living ones do."""
    made: list[Worker] = []

    def make(**fields: Any) -> Worker:
        worker = Worker.objects.create(host="a", pid=len(made) + 1, **fields)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock('rekindle_worker'::regclass::oid::int, %s)", [worker.pk])
        made.append(worker)
        return worker

    yield make
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock_all()")


def test_status_counts_and_tells_who_works_and_what_is_late(one, alive):
    Workflow.objects.filter(pk=one.pk).update(wake_at=Now() - timedelta(minutes=1))
    alive(version="1")
    Worker.objects.create(host="b", pid=2)
    Worker.objects.create(host="c", pid=3, heartbeat_at=Now() - timedelta(hours=1))

    found, text = say_json("status"), say("status")

    assert found["counts"] == dict.fromkeys(Status.values, 0) | {"queued": 1}
    assert found["oldest_due"]["id"] == str(one.pk)
    assert found["oldest_due"]["seconds"] >= 60
    assert found["workers_alive"] == 1
    assert [worker["state"] for worker in found["workers"]] == ["alive", "lost its lock", "silent"]
    assert "oldest due" in text


def test_status_of_an_empty_house():
    found = say_json("status")

    assert (found["workers_alive"], found["due"], found["oldest_due"]) == (0, 0, None)


@pytest.fixture
def scheduled() -> None:
    """As after a migrate; tests that empty the database empty this too."""
    schedules.synchronise()


def problems() -> str:
    out = io.StringIO()
    with pytest.raises(CommandError, match="wrong"):
        call_command("rekindle", "doctor", "--json", stdout=out)
    return " ".join(finding["problem"] for finding in json.loads(out.getvalue()))


def test_the_doctor_has_nothing_to_say_of_a_healthy_house(alive, scheduled):
    alive(version="1", heartbeat_every=10)

    assert say("doctor") == "Nothing is wrong."


def test_the_doctor_misses_workers(scheduled):
    assert problems() == "No worker is alive, so nothing runs."
    assert refused(1, "doctor") == "One thing is wrong."


def test_the_doctor_sees_mixed_versions_and_releases(alive):
    alive(version="1", release="r1")
    alive(version="2", release="r2")

    assert "different versions: 1, 2." in problems()
    assert "different releases: r1, r2." in problems()


def test_the_doctor_compares_heartbeats_with_the_threshold(alive, settings):
    alive(version="1", heartbeat_every=60)
    assert "beats every 60 s" in problems()

    settings.REKINDLE = {"HEARTBEAT": 20, "STALE_AFTER": 30}
    assert "One late heartbeat" in problems()


def test_the_doctor_misses_the_schedule(alive, scheduled):
    alive()
    Schedule.objects.filter(name="rekindle:sweep").delete()

    assert "has no schedule 'rekindle:sweep'" in problems()


def test_the_doctor_sees_a_clock_that_is_wrong(alive, monkeypatch):
    alive()
    now = doctor.time.time
    monkeypatch.setattr(doctor.time, "time", lambda: now() - 600)

    assert "600.0 s behind the database's" in problems()


def test_the_doctor_sees_a_migration_that_is_not_applied(alive):
    alive()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'rekindle'")

    assert "Migrations are not applied: rekindle.0001_initial" in problems()


def test_the_doctor_sees_an_old_server(alive, monkeypatch):
    alive()
    monkeypatch.setattr(connections["default"], "pg_version", 140011)

    assert "PostgreSQL 14" in problems()


# -- the whole ------------------------------------------------------------------------------------------------------


def test_hostile_text_reaches_no_terminal(one):
    evil = "\x1b]0;owned\x07\x9b31m\u202eevil\u2028\r\n\ttext\u200b\ud800\x7f"
    Workflow.objects.filter(pk=one.pk).update(key=evil[:-2], error={"message": evil[:-2]})
    Worker.objects.create(host=evil[:-2], pid=1)

    for text in (say("list"), say("show", one.pk), say("status"), clean(evil), table(("a",), [(evil,)])):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u2028\u202e\ud800]", text)


def test_a_cell_is_cut_and_says_so():
    assert clean("x" * 1_000_000) == "x" * 59 + "…"
    assert clean("\x00" * 1_000_000) == "…"


@pytest.mark.parametrize("given", ["0", "-1", "1.5", "x", "", "²", "9" * 5000])
def test_what_is_no_number_is_refused(given):
    with pytest.raises(Exception, match="no whole number from 1 to 5"):
        number(1, 5)(given)


@pytest.mark.parametrize("words", [("--processes", "0"), ("--concurrency", "-1"), ("--processes", "many")])
def test_work_refuses_numbers_that_mean_nothing(words):
    with pytest.raises(CommandError):
        say("work", *words)


def test_a_setting_that_cannot_be_read_is_one_sentence(monkeypatch, forget_settings):
    monkeypatch.setenv("REKINDLE_HEARTBEAT", "often")
    forget_settings()

    assert "cannot be read" in refused(2, "status")


@pytest.fixture
def forget_settings(monkeypatch) -> Any:
    from workflows.conf import settings

    yield settings.cache_clear
    monkeypatch.undo()
    settings.cache_clear()


def test_tables_that_are_not_there_are_one_sentence():
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE rekindle_workflow RENAME TO rekindle_elsewhere")

    assert "run manage.py migrate" in refused(4, "list")


def test_sweep_is_a_verb_of_recovery(one):
    hold(one, ended_at=Now())

    answer = recovery_commands.VERBS["sweep"].run({})

    assert answer.value["released"] == 1
    assert answer.text == "Found 1: released 1, gave up 0, cancelled 0, left 0 as they are."


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_every_verb_tells_the_exit_codes(verb, capsys):
    with pytest.raises(SystemExit):
        say(verb, "--help")

    assert "Exit codes:" in capsys.readouterr().out


# -- other processes ------------------------------------------------------------------------------------------------


def test_another_process_starts_and_shows_by_the_short_form(outside):
    started = manage(outside, "start", "parcel", "--input", "-", input='{"number": 3}')

    shown = manage(outside, "show", started.stdout.strip(), "--json")

    assert (started.returncode, started.stderr) == (0, "")
    assert json.loads(shown.stdout)["input"] == {"number": 3}


def test_another_process_ends_with_the_exit_code_and_one_sentence(outside):
    large = manage(outside, "start", "parcel", "--input", "-", input=BAD["ten megabytes"])
    unknown = manage(outside, "show", str(uuid4()))
    unreachable = manage(outside | {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}, "status")
    usage = manage(outside, "start")

    assert [done.returncode for done in (large, unknown, unreachable, usage)] == [2, 3, 4, 2]
    for done in (large, unknown, unreachable):
        assert done.stderr.count("\n") == 1, done.stderr
    assert not Workflow.objects.exists()


def test_bytes_that_are_no_text_are_refused_by_another_process(outside):
    done = subprocess.run(
        [sys.executable, "manage.py", "start", "parcel", "--input", b'{"note": "\xff"}', "--key", b"\xff"],
        cwd=ROOT,
        env=outside | {"REKINDLE_MODULES": __name__},
        capture_output=True,
    )

    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1


def test_a_reader_that_leaves_early_sees_no_traceback(outside):
    Workflow.objects.bulk_create(Workflow(name="parcel", key=f"{n:0200}", wake_at=Now()) for n in range(1000))
    words = f"{sys.executable} manage.py list --limit 1000 --json | head -1"

    done = subprocess.run(words, shell=True, cwd=ROOT, env=outside, capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("[\n", "")


def test_work_opens_no_connection_before_it_forks(outside):
    """The supervisor holds none of its children's sockets: their locks must end when they do."""
    pk = start("parcel", {"number": 9}).pk
    working = subprocess.Popen(
        [sys.executable, "manage.py", "work", "--concurrency", "2"],
        cwd=ROOT,
        env=outside | {"REKINDLE_MODULES": __name__},
    )
    try:
        eventually(lambda: Workflow.objects.filter(pk=pk, status=Status.COMPLETED).exists())

        links = [os.readlink(link) for link in Path(f"/proc/{working.pid}/fd").iterdir()]
        assert not [link for link in links if link.startswith("socket:")]
    finally:
        working.send_signal(signal.SIGTERM)
        assert working.wait(60) == 0


def test_work_refuses_workflows_that_cannot_be_imported(outside):
    done = subprocess.run(
        [sys.executable, "manage.py", "work"],
        cwd=ROOT,
        env=outside | {"REKINDLE_MODULES": "no.such.module"},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 1
    assert "cannot be imported: ModuleNotFoundError" in done.stderr
    assert "Traceback" not in done.stderr

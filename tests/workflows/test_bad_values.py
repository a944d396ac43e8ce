"""What cannot be stored is refused with a sentence: nothing is half-stored, nothing is stuck, nobody else is harmed."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from workflows import Run, signal, start, start_many, workflow
from workflows.definitions import Definition
from workflows.errors import BadInput, BadValue, KeyTaken, Refusal, Refused, UnknownWorkflow
from workflows.executing import execute
from workflows.models import Event, Signal, Step, Workflow
from workflows.paths import Alone
from workflows.retry import Backoff
from workflows.testing import rehearse
from workflows.values import parse

from .hands import done, hands


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def loop() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


BAD = {
    "ten megabytes": ("x" * 10_000_000, "10,000,0"),
    "a hundred thousand levels": (nested(100_000), "nested too deeply"),
    "a hundred and one levels": (nested(101), "nested too deeply"),
    "a value inside itself": (loop(), "Circular"),
    "NUL": ("a\0b", "NUL"),
    "NUL in a name": ({"a\0": 1}, "NUL"),
    "a lone surrogate": ("\ud800", "surrogate"),
    "NaN": (float("nan"), "not JSON"),
    "1e400": (float("1e400"), "not JSON"),
    "five thousand digits": (10**5000, "not JSON"),
    "bytes": (b"x", "not JSON"),
    "a set": ({1}, "not JSON"),
    "a moment": (datetime(2030, 1, 1, tzinfo=UTC), "not JSON"),
    "a name that is no text": ({(1, 2): 3}, "not JSON"),
}
bad = pytest.mark.parametrize(("value", "why"), BAD.values(), ids=BAD.keys())


@workflow("shelf", search=("thing",))
def shelf(run: Run, thing: Any = None) -> Any:
    return "stored"


@workflow("returns_bad")
def returns_bad(run: Run, which: str) -> Any:
    return BAD[which][0]


@workflow("step_returns_bad")
def step_returns_bad(run: Run, which: str) -> Any:
    return run.step(lambda: BAD[which][0], name="look", retries=5)


@workflow("writes_badly")
def writes_badly(run: Run, what: str) -> Any:
    return THINGS[what](run)


LATE = datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))
THINGS: dict[str, Callable[[Run], Any]] = {
    "a step's name is no text": lambda run: run.step(print, name="\udcff"),
    "a step's name is too long": lambda run: run.step(print, name="x" * 201),
    "a step's name holds NUL": lambda run: run.step(print, name="a\0b"),
    "a branch's name is no text": lambda run: run.parallel("all", {"\udcff": lambda run: None}),
    "paths nest without end": lambda run: deeper(run),
    "an endless sleep": lambda run: run.sleep(float("inf")),
    "a sleep that is no number": lambda run: run.sleep(float("nan")),
    "a sleep beyond the calendar": lambda run: run.sleep(timedelta.max),
    "a moment beyond the calendar": lambda run: run.sleep_until(LATE),
    "an endless pend": lambda run: run.pend("desk", timeout=float("inf")),
    "an endless wait for a signal": lambda run: run.receive("letter", timeout=timedelta.max),
    "a variable": lambda run: run.set(limit=float("nan")),
    "a variable in a step": lambda run: run.step(lambda: run.set(limit="\ud800"), name="set"),
    "progress that is no number": lambda run: run.step(lambda: run.progress(float("nan")), name="count"),
    "an error without a text": lambda run: mute(),
    "an error without a text in a step": lambda run: run.step(mute),
    "an unknown on_crash": lambda run: run.step(print, on_crash="pray"),
    "no tries": lambda run: run.step(print, retries=0),
    "a ticket nobody takes": lambda run: run.ticket("nobody"),
}


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def mute() -> None:
    raise Mute


def deeper(run: Run) -> Any:
    return run.parallel("x" * 100, a=deeper)


# -- at the door ----------------------------------------------------------------------------------------------------


@bad
@pytest.mark.django_db
def test_input_that_cannot_be_stored_is_refused(value, why):
    with pytest.raises(BadValue, match=why) as refused:
        start("shelf", {"thing": value})

    assert "The input" in str(refused.value)
    assert len(str(refused.value)) < 400
    assert not Workflow.objects.exists()
    assert not Event.objects.exists()


@bad
@pytest.mark.django_db
def test_one_bad_input_among_many_starts_none_of_them(value, why):
    with pytest.raises(BadValue, match=why):
        start_many("shelf", [{"thing": 1}, {"thing": value}, {"thing": 3}])

    assert not Workflow.objects.exists()


@bad
@pytest.mark.django_db
def test_variables_and_signals_that_cannot_be_stored_are_refused(value, why):
    with pytest.raises(BadValue, match=why):
        start("shelf", variables={"thing": value})
    pk = start("shelf").pk
    with pytest.raises(BadValue, match=why):
        signal(pk, "letter", value)

    assert Workflow.objects.count() == 1
    assert not Signal.objects.exists()


@pytest.mark.parametrize(
    "given",
    [
        {"input": ["thing"]},
        {"input": {1: 2}},
        {"input": {"colour": 1}},
        {"input": {"run": 1}},
        {"variables": [1]},
        {"variables": {1: 2}},
        {"key": 7},
        {"key": "x" * 201},
        {"key": "\udcff"},
        {"priority": "urgent"},
        {"at": "tomorrow"},
        {"at": datetime(2030, 1, 1)},
        {"at": LATE},
    ],
    ids=str,
)
@pytest.mark.django_db
def test_whatever_else_does_not_fit_is_refused_in_one_sentence(given):
    with pytest.raises((BadInput, BadValue)) as refused:
        start("shelf", **given)

    assert str(refused.value).endswith(".")
    assert "\n" not in str(refused.value)
    assert not Workflow.objects.exists()


@pytest.mark.django_db
def test_an_unknown_workflow_is_refused_and_the_known_are_named():
    with pytest.raises(UnknownWorkflow, match=r"Known: .*shelf"):
        start("shelve")


@pytest.mark.django_db
def test_a_key_used_again_with_other_input_is_refused_and_harms_no_other_of_its_batch():
    before = start("shelf", {"thing": 1}, key="K")

    with pytest.raises(KeyTaken, match=str(before.pk)):
        start("shelf", {"thing": 2}, key="K")
    with pytest.raises(KeyTaken):
        start_many("shelf", [{"thing": 7}, {"thing": 2}], keys=["J", "K"])
    with pytest.raises(KeyTaken):
        start_many("shelf", [{"thing": 1}, {"thing": 2}], keys=["L", "L"])

    assert [row.pk for row in Workflow.objects.all()] == [before.pk]


def test_json_that_was_typed_may_not_repeat_a_key():
    with pytest.raises(BadValue, match="'a' appears twice"):
        parse('{"a": 1, "a": 2}', "The input")


@pytest.mark.parametrize(
    "define",
    [
        lambda: workflow("x" * 101),
        lambda: workflow("a\0b"),
        lambda: workflow("x", priority="urgent"),
        lambda: Definition("x", print).ticket("a~b"),
        lambda: Definition("x", print).ticket("x" * 100),
        lambda: Backoff(first=-1),
        lambda: Backoff(most=float("inf")),
    ],
)
def test_a_definition_that_could_never_be_stored_is_refused_where_it_stands(define):
    with pytest.raises((ValueError, Refused)):
        define()


# -- inside a run ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", BAD)
@pytest.mark.django_db
def test_an_output_that_cannot_be_stored_fails_its_workflow(which):
    failed = rehearse("returns_bad", which=which).to_end()

    assert (failed.status, failed.error["type"]) == ("failed", "BadValue")
    assert BAD[which][1] in failed.error["message"]


@pytest.mark.parametrize("which", BAD)
@pytest.mark.django_db
def test_a_result_that_cannot_be_stored_fails_its_step_at_once(which):
    """Trying again would not make it JSON."""
    failed = rehearse("step_returns_bad", which=which).to_end()

    step = Step.objects.get(workflow=failed)
    assert (failed.status, step.status, step.attempt) == ("failed", "failed", 1)
    assert BAD[which][1] in step.error["message"]


@pytest.mark.parametrize("what", THINGS)
@pytest.mark.django_db(transaction=True)
def test_whatever_a_body_asks_for_wrongly_ends_it_and_nobody_else(what):
    """I11: the journal that many runs share goes on, and the workflow is not left in its worker's hands."""
    start("writes_badly", {"what": what})
    other = start("three")
    with hands() as claimer:
        claimed = {held.name: held for held in claimer.claim(9)}

        execute(claimed["writes_badly"], Alone())
        execute(claimed["three"], Alone())

    ended = Workflow.objects.get(name="writes_badly")
    assert (ended.status, ended.worker_id) == ("failed", None)
    assert ended.error["message"]
    assert Workflow.objects.get(pk=other.pk).status == "completed"


@pytest.mark.django_db(transaction=True)
def test_a_write_that_no_connection_can_carry_is_found_and_the_rest_of_its_batch_is_written():
    """I11: a text that has no bytes is found before the database sees it."""
    start_many("three", [{}, {}, {}])
    with hands() as claimer:
        helds = claimer.claim(3)
        outcomes: dict[int, BaseException | None] = {}

        def write(n: int, name: str) -> None:
            try:
                helds[n].write(step=done(helds[n], name), event="step.completed")
                outcomes[n] = None
            except Refusal as error:
                outcomes[n] = error

        claimer.journal.submit = lambda _: None  # gather, then write all at once
        threads = [threading.Thread(target=write, args=(n, name)) for n, name in enumerate(("a", "\udcff", "c"))]
        for thread in threads:
            thread.start()
        while not all(held.pending and held.pending.waiters for held in helds):
            pass
        del claimer.journal.submit
        for held in helds:
            claimer.journal.submit(held)
        for thread in threads:
            thread.join(10)

    assert isinstance(outcomes[1], Refusal)
    assert (outcomes[0], outcomes[2]) == (None, None)
    assert sorted(Step.objects.values_list("name", flat=True)) == ["a", "c"]

"""Bodies that come too late, and variables that come with results."""

import threading

import pytest

from workflows import Run, workflow
from workflows.errors import StepTimedOut
from workflows.models import Step
from workflows.paths import Alone
from workflows.testing import rehearse

pytestmark = pytest.mark.django_db


@workflow("answers late")
def times_out(run: Run) -> dict[str, object]:
    go, gone = threading.Event(), threading.Event()
    said: list[object] = []

    def late() -> str:
        go.wait(10)
        for tries in (lambda: run.set(x="late"), lambda: run.progress(1), lambda: run.now(), lambda: run.ticket("x")):
            try:
                tries()
            except Exception as error:
                said.append(type(error).__name__)
        said.append(run.attempt)
        gone.set()
        return "late"

    def retry() -> str:
        run.set(y="in time")
        go.set()
        gone.wait(10)
        run.set(z=run.attempt)
        return "in time"

    try:
        run.step(late, timeout=0.01)
    except Exception:
        result = run.step(retry)
    return {"result": result, "said": said, "variables": dict(run.variables)}


def test_a_body_that_timed_out_has_no_say_in_what_came_after_it():
    """◆ A result carries its attempt: nothing of a body that was left behind counts, and it takes nothing away."""
    done = rehearse("answers late").to_end()

    assert done.output["result"] == "in time"
    assert done.output["variables"] == {"y": "in time", "z": 1}
    assert done.output["said"] == [
        StepTimedOut.__name__,
        StepTimedOut.__name__,
        "RuntimeError",
        StepTimedOut.__name__,
        1,
    ]
    assert done.variables == {"y": "in time", "z": 1}


def test_a_variables_type_is_judged_when_it_is_set_not_when_it_is_replayed():
    @workflow("changes_its_mind")
    def changes_its_mind(run: Run) -> object:
        run.set(x=1)
        run.set(x=None)
        run.set(x="text")
        run.sleep(1)
        return run.variables["x"]

    assert rehearse("changes_its_mind").to_end().output == "text"


@pytest.mark.parametrize("value", ["a text", object()])
def test_a_refused_variable_is_recorded_and_refused_on_every_replay(value):
    @workflow("sets_badly")
    def sets_badly(run: Run) -> object:
        run.set(x=1)
        try:
            run.set(x=value, y=2)
        except Exception as error:
            caught = type(error).__name__
        run.sleep(1)
        return [caught, dict(run.variables)]

    assert rehearse("sets_badly").to_end().output == ["StepFailed", {"x": 1}]


def test_variables_of_a_body_whose_result_was_refused_are_not_kept():
    @workflow("returns_rubbish")
    def returns_rubbish(run: Run) -> object:
        def body() -> object:
            run.set(x=1)
            return object()

        try:
            run.step(body)
        except Exception:
            return dict(run.variables)

    done = rehearse("returns_rubbish").to_end()

    assert (done.output, done.variables) == ({}, {})


@pytest.mark.parametrize("on_crash", ["later", "hold", "fail"])
def test_a_step_that_must_not_simply_rerun_has_its_start_durable_also_when_lazy(on_crash):
    """A step whose on_crash is not rerun always has its start durable before its body, and its end after it."""
    seen: list[str] = []

    @workflow(f"lazy_payment_{on_crash}", persistence="lazy")
    def lazy_payment(run: Run) -> None:
        look = lambda: seen.extend(Step.objects.filter(name="pay").values_list("status", flat=True))  # noqa: E731
        run.step(look, name="pay", on_crash=on_crash)
        run.step(look, name="look")

    rehearse(f"lazy_payment_{on_crash}").to_end()

    assert seen == ["open", "done"]


def test_a_start_that_is_shown_late_is_not_shown_of_a_path_that_was_dropped():
    """A ticket drops open paths; a body about to begin on one of them does not begin."""
    from workflows.claiming import Claimer
    from workflows.definitions import find
    from workflows.errors import Dropped
    from workflows.inline import InlineConnection, InlineJournal
    from workflows.models import Worker
    from workflows.run import Run as RunOf

    rehearse("jump")
    worker = Worker.objects.create(host="test", pid=1)
    held = Claimer(InlineConnection(), worker.pk, InlineJournal(worker.pk), {"jump": find("jump")}).claim(1)[0]
    run = RunOf(held, Alone())
    step = run._meet("late", "step")
    held.jump("stop", ".", held.epoch)

    with pytest.raises(Dropped):
        held.begin(step, run._epoch)

    assert held.opening == {}

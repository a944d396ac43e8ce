"""The timeline: attempts and waits are read from the diary, places are computed without the database."""

import itertools
from datetime import UTC, datetime, timedelta

from recovery import timeline
from recovery.models import Recovery
from recovery.timeline.scale import scale
from workflows.models import Event, Step

BEGAN = datetime(2026, 5, 3, 12, tzinfo=UTC)
WORKERS = {1: "host-2:812", 2: "host-4:99"}


def at(seconds):
    return BEGAN + timedelta(seconds=seconds)


def step(name, position=0, status="done", path=".", **more):
    return Step(name=name, position=position, status=status, path=path, **{"fence": 1, "began_at": at(position)} | more)


class Diary(list):
    def tell(self, second, type, step="", path=".", worker=1, **more):
        place = {"path": path, "step": step} if step else {"path": "", "step": ""}
        self.append(Event(seq=len(self) + 1, at=at(second), type=type, worker=worker, **place, **more))
        return self


def read(steps, diary, ended=10.0, rescues=()):
    return timeline.read(steps, diary, WORKERS, rescues, began=BEGAN, ended=at(ended))


def spans(history, key):
    line = next(line for line in history.lines if line.key == key)
    return [
        (span.sort, (span.start - BEGAN).total_seconds(), span.end and (span.end - BEGAN).total_seconds(), span.outcome)
        for span in line.spans
    ]


def crash():
    diary = Diary().tell(0, "workflow.queued").tell(0, "workflow.started")
    diary.tell(1, "step.completed", "load", attempt=1, seconds=1.0)
    diary.tell(1.1, "step.started", "charge", attempt=1)
    diary.tell(4, "workflow.orphaned", data={"worker": "host-2:812", "finding": "dead_worker"})
    diary.tell(4.4, "workflow.recovered", worker=2)
    diary.tell(6, "step.completed", "charge", worker=2, attempt=2, seconds=1.5)
    return read([step("load"), step("charge", 1)], diary, rescues=[Recovery(seq=5, last_seen_at=at(3.5))])


def test_a_crash_breaks_an_attempt_off_and_the_next_worker_begins_another():
    history = crash()

    assert spans(history, ".:1") == [("body", 1.1, 3.5, "crashed"), ("body", 4.5, 6.0, "completed")]
    assert [span.worker for span in history.lines[1].spans] == ["host-2:812", "host-4:99"]


def test_death_and_recovery_are_marked_and_what_was_finished_is_kept():
    history = crash()
    drawing = timeline.draw(history)

    assert [moment.text for moment in history.moments] == [
        "host-2:812 died",
        "recovered by host-4:99, 0.9 s later, 1 step kept",
    ]
    assert [bar.state for bar in drawing.rows[0].bars] == ["completed", "kept"]
    assert [bar.crashed for bar in drawing.rows[1].bars] == [True, False]
    assert [mark.kind for mark in drawing.marks] == ["death", "recovery"]


def test_failures_are_followed_by_waits():
    diary = Diary().tell(0, "workflow.started")
    diary.tell(1, "step.failed", "send", attempt=1, seconds=1.0, data={"type": "E", "message": "m", "will_retry": True})
    diary.tell(
        4, "step.failed", "send", attempt=2, seconds=1.0, data={"type": "E", "message": "m", "will_retry": False}
    )

    history = read([step("send", status="failed")], diary)

    assert spans(history, ".:0") == [
        ("body", 0, 1, "failed"),
        ("wait", 1, 3, "completed"),
        ("body", 3, 4, "failed"),
    ]
    assert history.lines[0].spans[0].note == "E: m"


def test_the_second_step_of_a_name_has_a_row_of_its_own():
    diary = Diary().tell(0, "workflow.started")
    diary.tell(1, "step.completed", "ping", attempt=1, seconds=0.5)
    diary.tell(2, "step.completed", "ping", attempt=1, seconds=0.5)

    history = read([step("ping"), step("ping", 1, occurrence=2)], diary)

    assert spans(history, ".:0") == [("body", 0.5, 1, "completed")]
    assert spans(history, ".:1") == [("body", 1.5, 2, "completed")]
    assert timeline.draw(history).rows[1].label == "ping ~2"


def test_a_revived_step_goes_on_in_its_row():
    diary = Diary().tell(0, "workflow.started")
    diary.tell(1, "step.failed", "send", attempt=1, seconds=1.0, data={"will_retry": False})
    diary.tell(1, "workflow.failed").tell(5, "workflow.revived", data={"by": "otto"}).tell(5.1, "workflow.resumed")
    diary.tell(6, "step.completed", "send", attempt=2, seconds=0.5)

    history = read([step("send")], diary)

    assert [span[3] for span in spans(history, ".:0")] == ["failed", "completed"]
    assert history.moments[0].text == "revived by otto"


def test_parallel_paths_have_rows_of_their_own_under_their_block():
    steps = [
        step("load"),
        step("checks", 1, kind="parallel"),
        step("score", path=".checks.fraud."),
        step("reserve", path=".checks.stock."),
        step("charge", 2),
    ]
    diary = Diary().tell(0, "workflow.started").tell(1, "parallel.started", "checks")
    diary.tell(2, "step.completed", "reserve", path=".checks.stock.", attempt=1, seconds=0.8)
    diary.tell(3, "step.completed", "score", path=".checks.fraud.", attempt=1, seconds=1.8)
    diary.tell(3, "parallel.joined", "checks")

    drawing = timeline.draw(read(steps, diary))

    assert [row.label for row in drawing.rows] == ["load", "checks", "score", "reserve", "charge"]
    assert [row.path for row in drawing.rows] == ["", "", "checks.fraud", "checks.stock", ""]


def test_a_pend_ends_when_somebody_resumes_it():
    diary = Diary().tell(0, "workflow.started").tell(1, "pend.started", "desk")
    diary.tell(5, "pend.resumed", data={"path": ".", "basket": "desk"})

    history = read([step("desk", kind="pend")], diary)

    assert spans(history, ".:0") == [("wait", 1, 5, "completed")]


def test_what_still_runs_is_drawn_up_to_now():
    diary = Diary().tell(0, "workflow.started").tell(2, "step.started", "slow", attempt=1)

    bar = timeline.draw(read([step("slow", status="open")], diary, ended=4), chosen=".:0").rows[0].bars[0]

    assert (bar.state, bar.x, bar.width) == ("running", "50.000%", "50.000%")


def test_steps_kept_from_the_generation_before_are_pale():
    history = read([step("load", fence=0, ended_at=at(-900))], Diary().tell(0, "workflow.started"))

    assert [bar.state for bar in timeline.draw(history).rows[0].bars] == ["kept"]


def test_a_long_sleep_is_folded_unless_it_is_asked_for():
    diary = Diary().tell(0, "workflow.started").tell(1, "step.completed", "a", attempt=1, seconds=1.0)
    diary.tell(1, "sleep.started", "sleep").tell(86401, "sleep.completed", "sleep")
    diary.tell(86402, "step.completed", "b", attempt=1, seconds=1.0)
    history = read([step("a"), step("sleep", 1, kind="sleep"), step("b", 2)], diary, ended=86402)

    folded, full = timeline.draw(history), timeline.draw(history, fold=False)

    assert len(folded.folds) == 1
    assert folded.folds[0].text == "23 h 59 min"
    assert float(folded.rows[0].bars[0].width[:-1]) > 40
    assert not full.folds
    assert float(full.rows[0].bars[0].width[:-1]) < 0.01


def test_hundreds_of_steps_are_capped_with_the_urgent_ones_kept():
    steps = [step(f"page {i}", i, status="failed" if i == 7 else "done") for i in range(500)]

    drawing = timeline.draw(read(steps, Diary().tell(0, "workflow.started"), ended=500))

    assert (len(drawing.rows), drawing.left_out, drawing.total) == (120, 380, 500)
    assert drawing.rows[0].label == "page 7"
    assert len(timeline.draw(read(steps, Diary()), most=None).rows) == 500


def test_words_that_would_meet_stand_on_lines_of_their_own():
    diary = Diary().tell(0, "workflow.started")
    for second in (1, 2, 3):
        diary.tell(second, "workflow.orphaned", data={"worker": "host-2:812", "finding": "dead_worker"})
        diary.tell(second + 0.5, "workflow.recovered", worker=2)

    marks = timeline.draw(read([step("a")], diary)).marks

    assert len({mark.y for mark in marks}) > 1
    assert all(0 <= float(mark.x[:-1]) <= 100 for mark in marks)


def test_ticks_are_round_and_apart():
    ticks = scale([(at(0), at(9.3))], at(0), at(9.3)).ticks()

    assert [second for _, second in ticks] == [0, 2, 4, 6, 8]
    assert all(b[0] - a[0] >= 8 for a, b in itertools.pairwise(ticks))

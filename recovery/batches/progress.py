"""How far a batch is, in words. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from ..models import Batch
from ..models.batch import State
from ..words import duration

STILL = timedelta(seconds=20)  # without a move, until somebody should look after it
STEADY = 1.0  # seconds of work before its pace says anything


@dataclass(frozen=True, slots=True)
class Progress:
    state: str  # names the icon and the colour
    word: str
    sentence: str
    percent: int
    is_still: bool  # nobody carries it on


STATES = {
    State.WAITING: ("queued", "Waiting"),
    State.RUNNING: ("running", "Running"),
    State.STOPPED: ("paused", "Stopped"),
    State.DONE: ("completed", "Done"),
}


def progress(batch: Batch, now: datetime) -> Progress:
    state, word = STATES[State(batch.state)]
    still = batch.is_open and now - (batch.moved_at or batch.begun_at) > STILL
    return Progress(state, word, _sentence(batch, still), 100 * batch.handled // max(1, batch.total), still)


def _sentence(batch: Batch, still: bool) -> str:
    took = duration(((batch.ended_at or batch.begun_at) - batch.begun_at).total_seconds())
    if batch.state == State.DONE:
        return f"All {batch.total:,} have had their turn, in {took}." if batch.total > 1 else f"It is over, in {took}."
    if batch.state == State.STOPPED:
        left = f"{batch.left:,} of {batch.total:,} were not reached and stay as they are"
        return f"{batch.stopped_by} stopped it after {took}; {left}."
    if still:
        return "Nothing moves: it goes on as soon as a worker or the scheduler is there."
    if batch.state == State.WAITING:
        return "It begins as soon as a worker or the scheduler has a hand free, usually within a second."
    return _pace(batch)


def _pace(batch: Batch) -> str:
    """From what was done so far, up to its last item: while nothing moves, nothing is news."""
    if not batch.started_at or not batch.moved_at:
        return "It has begun."
    seconds = (batch.moved_at - batch.started_at).total_seconds()
    if seconds < STEADY:
        return f"{batch.handled:,} of {batch.total:,} have had their turn."
    pace = batch.handled / seconds
    return f"{round(pace * 60):,} a minute, about {duration(batch.left / pace)} left."

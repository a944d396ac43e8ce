"""Figures as JSON. Colours are names of CSS tokens; the browser knows what they look like in its theme.

A chart is a table first: the figure, the page's table and the CSV are drawn from the same rows.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from operator import attrgetter
from typing import Any

from .counts import Counts
from .outcomes import REASONS
from .queries.figures import series
from .ranges import Range

Rows = Sequence[tuple[Any, ...]]
Room = tuple[float, float]  # from where to where, between 0 and 1
HEIGHT, LINE = 130, 11  # pixels of a chart, and of a line of words in it
HEADROOM = (1.2, 1.35)  # for one line of words, for two
WORD = 0.24  # of a chart's width is taken by the word of a mark


@dataclass(frozen=True, slots=True)
class Chart:
    columns: tuple[str, ...]
    read: Callable[..., Rows]  # of a range; of one name in it, if it can be had by name
    draw: Callable[[Rows], dict[str, Any]]
    metric: str = ""  # whose rule, if there is one, draws its threshold across
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment worth seeing on every chart: a release, a worker that started or died."""

    at: datetime
    text: str
    colour: str = "--ink-3"


def bars(rows: Rows, traces: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Stacked bars over time: the first column is the time, each further one a trace of (name, token)."""
    import plotly.graph_objects as go  # slow to import, and most requests draw nothing

    at = [row[0].isoformat() for row in rows]
    figure = go.Figure(
        data=[
            go.Bar(name=name, x=at, y=[row[i] for row in rows], meta=token, offset=0)  # from when it begins
            for i, (name, token) in enumerate(traces, start=1)
        ],
        layout={"barmode": "stack", "bargap": 0.18, "hovermode": "x unified", "showlegend": False},
    )
    few = max((sum(row[1:]) for row in rows), default=0) < 5  # then half of one is no tick
    figure.update_yaxes(rangemode="tozero", tickformat="~s", **({"dtick": 1} if few else {"nticks": 5}))
    return plain(figure)


def lines(rows: Rows, traces: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Lines over time, each named where it ends. Where nothing happened there is no point, and the line goes on."""
    import plotly.graph_objects as go

    at = [row[0].isoformat() for row in rows]
    figure = go.Figure(layout={"hovermode": "x unified", "showlegend": False, "margin": {"r": 34}})
    ends: list[tuple[float, str, str, str]] = []
    for i, (name, token) in enumerate(traces, start=1):
        values = [row[i] for row in rows]
        known = [place for place, value in enumerate(values) if value is not None]
        mode = "lines+markers" if len(known) < 8 else "lines"
        figure.add_scatter(name=name, x=at, y=values, meta=token, mode=mode, connectgaps=True, marker={"size": 4})
        if known:
            ends.append((values[known[-1]], at[known[-1]], name, token))
    _name_the_ends(figure, sorted(ends), max((value for row in rows for value in row[1:] if value), default=1))
    figure.update_xaxes(range=[at[0], at[-1]] if at else None)
    figure.update_yaxes(rangemode="tozero", nticks=5)
    return plain(figure)


def _name_the_ends(figure: Any, ends: list[tuple[float, str, str, str]], most: float) -> None:
    """Lines that end close together are named one above the other."""
    above = float(-LINE)
    for value, at, name, token in ends:
        place = value / most * HEIGHT / HEADROOM[0]
        shift = round(max(above + LINE - place, 0), 1)
        above = place + shift
        figure.add_annotation(
            x=at, y=value, text=name, name=token, showarrow=False, xanchor="left", xshift=3, yshift=shift
        )


def marked(figure: dict[str, Any], marks: Sequence[Mark]) -> dict[str, Any]:
    """Dotted lines, the most important first; each has a word if there is room, in the first line or in the second: a release
    and the deaths after it are told together. `name` is the token of their colour."""
    layout, lines = figure["layout"], [list[Room](), list[Room]()]
    for mark in marks:
        at = mark.at.isoformat()
        line = {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "name": mark.colour}
        layout.setdefault("shapes", []).append(line | {"line": {"width": 1, "dash": "dot"}})
        along = _along(figure, mark.at)
        room = (along - WORD, along) if along > 1 - WORD else (along, along + WORD)
        line_of_words = next((number for number, taken in enumerate(lines) if _has_room(taken, room)), None)
        if line_of_words is None:
            continue
        lines[line_of_words].append(room)
        left = room[0] == along
        said = escape(mark.text, quote=False)  # Plotly makes links and type of tags
        word = {"x": at, "y": 1, "yref": "paper", "text": said, "name": mark.colour, "showarrow": False}
        side = {"xanchor": "left" if left else "right", "xshift": 3 if left else -3}
        layout.setdefault("annotations", []).append(word | side | {"yanchor": "top", "yshift": -LINE * line_of_words})
    if marks:
        _make_headroom(figure, HEADROOM[bool(lines[1])])
    return figure


def _has_room(taken: list[Room], wanted: Room) -> bool:
    return not any(wanted[0] < end and begin < wanted[1] for begin, end in taken)


def _make_headroom(figure: dict[str, Any], headroom: float) -> None:
    """The words stand above the highest bar or line, not on it."""
    columns = [[value or 0 for value in trace["y"]] for trace in figure["data"]]
    stacked = figure["layout"].get("barmode") == "stack"
    highest = max((sum(values) if stacked else max(values) for values in zip(*columns, strict=True)), default=0)
    if highest:
        figure["layout"].setdefault("yaxis", {})["range"] = [0, highest * headroom]


def _along(figure: dict[str, Any], at: datetime) -> float:
    """How far along the chart a moment is, between 0 and 1."""
    moments = figure["data"][0]["x"] if figure["data"] else []
    if len(moments) < 2:
        return 0
    first, last = datetime.fromisoformat(moments[0]), datetime.fromisoformat(moments[-1])
    return (at - first) / (last - first)


def threshold(figure: dict[str, Any], value: float, text: str, colour: str = "--failed") -> dict[str, Any]:
    """The line a rule draws across a chart, once the values come near it: far above them it would only flatten them."""
    highest = max((value for trace in figure["data"] for value in trace["y"] if value), default=0)
    if highest < value / 3:
        return figure
    layout = figure["layout"]
    line = {"type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": value, "y1": value, "name": colour}
    layout.setdefault("shapes", []).append(line | {"line": {"width": 1, "dash": "dash"}})
    word = {"x": 1, "xref": "paper", "y": value, "text": text, "name": colour, "showarrow": False}
    layout.setdefault("annotations", []).append(word | {"xanchor": "right", "yanchor": "bottom"})
    return figure


def plain(figure: Any) -> dict[str, Any]:
    drawn: dict[str, Any] = json.loads(figure.to_json())
    drawn["layout"].pop("template", None)
    return drawn


def _percentiles(histogram: str, *shares: float) -> Callable[..., Rows]:
    def read(over: Range, name: str = "") -> Rows:
        rows = series(over, name, histograms=[histogram])
        return [(one.at, *(_rounded(one.pth(histogram, share)) for share in shares)) for one in rows]

    return read


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _of(*pick: Callable[[Counts], Any]) -> Callable[..., Rows]:
    def read(over: Range, name: str = "") -> Rows:
        return [(one.at, *(one_of(one) for one_of in pick)) for one in series(over, name, histograms=())]

    return read


THROUGHPUT = [("completed", "--done"), ("recovered", "--orphan"), ("failed", "--failed")]
RESUME = [("p50", "--orphan"), ("p99", "--ink-3")]
DURATION = [("p50", "--running"), ("p95", "--ink-2"), ("p99", "--ink-3")]
QUEUE = [("due", "--paused")]

BY_REASON = [
    (REASONS["infrastructure_restart"].lower(), "--orphan"),
    (REASONS["stale_detection"].lower(), "--queued"),
    (REASONS["manual"].lower(), "--ink-3"),
]

CHARTS = {
    "throughput": Chart(
        ("from", *(name for name, _ in THROUGHPUT)),
        _of(lambda one: one.completed - one.rescued, lambda one: one.rescued, lambda one: one.failed),
        lambda rows: bars(rows, THROUGHPUT),
        by_name=True,
    ),
    "resume": Chart(
        ("from", "p50 seconds", "p99 seconds"),
        _percentiles("resume", 0.5, 0.99),
        lambda rows: lines(rows, RESUME),
        "stale_duration",
    ),
    "duration": Chart(
        ("from", "p50 seconds", "p95 seconds", "p99 seconds"),
        _percentiles("took", 0.5, 0.95, 0.99),
        lambda rows: lines(rows, DURATION),
        by_name=True,
    ),
    "queue": Chart(
        ("from", "due", "oldest seconds"),
        _of(lambda one: one.due, lambda one: _rounded(one.oldest)),
        lambda rows: lines(rows, QUEUE),
    ),
    "reasons": Chart(
        ("from", *(name for name, _ in BY_REASON)),
        _of(*(attrgetter(reason) for reason in REASONS)),
        lambda rows: bars(rows, BY_REASON),
    ),
}

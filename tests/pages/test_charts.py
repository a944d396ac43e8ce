from datetime import UTC, datetime, timedelta

import plotly.graph_objects as go
import pytest
from django.utils import timezone

from recovery import charts, spreadsheet


def test_the_chart_counts_what_ended_in_the_range(viewer, workflow):
    for status in ("completed", "completed", "failed"):
        workflow(status)
    workflow("completed", recoveries=1)
    workflow("completed", finished_at=timezone.now() - timedelta(hours=2))

    figure = viewer.get("/charts/throughput.json?range=1h").json()

    assert [trace["name"] for trace in figure["data"]] == ["completed", "recovered", "failed"]
    assert [sum(trace["y"]) for trace in figure["data"]] == [2, 1, 1]
    assert all(len(trace["x"]) in (60, 61) for trace in figure["data"])
    assert "template" not in figure["layout"]
    go.Figure(figure)


@pytest.mark.parametrize("range", ["15m", "24h", "7d", "30d"])
def test_every_range_has_a_bar_for_every_bucket(viewer, workflow, range):
    workflow("completed")

    figure = viewer.get(f"/charts/throughput.json?range={range}").json()

    assert 15 <= len(figure["data"][0]["x"]) <= 98
    assert sum(figure["data"][0]["y"]) == 1


def test_a_figure_that_did_not_change_is_not_sent_again(viewer, workflow):
    workflow("completed", finished_at=datetime(2026, 1, 1, 12, tzinfo=UTC))
    address = "/charts/throughput.json?from=2026-01-01T00:00&to=2026-01-02T00:00"

    first = viewer.get(address)
    again = viewer.get(address, headers={"If-None-Match": first["ETag"]})

    assert sum(first.json()["data"][0]["y"]) == 1
    assert again.status_code == 304


def test_the_same_figures_are_a_table_and_a_csv(viewer, workflow):
    workflow("failed", finished_at=datetime(2026, 1, 1, 12, tzinfo=UTC))
    query = "from=2026-01-01T11:00&to=2026-01-01T13:00"

    table = viewer.get(f"/charts/throughput.html?{query}", headers={"HX-Request": "true"}).content.decode()
    page = viewer.get(f"/charts/throughput.html?{query}").content.decode()
    csv = b"".join(viewer.get(f"/charts/throughput.csv?{query}").streaming_content).decode()

    assert "<html" not in table
    assert "<html" in page
    assert "2026-01-01 12:00:00 UTC" in table
    assert csv.startswith("from,completed,recovered,failed\r\n")
    assert "2026-01-01T12:00:00+00:00,0,0,1" in csv


def test_a_spreadsheet_finds_no_formula():
    """Security."""
    written = "".join(spreadsheet.lines(["name"], [["=cmd()"], ["@x"], ["-1"], [-1], ["fine"]]))

    assert written.split() == ["name", "'=cmd()", "'@x", "'-1", "-1", "fine"]


def test_marks_and_thresholds_are_shapes_that_name_their_colour():
    figure = charts.bars([(timezone.now(), 9)], [("completed", "--done")])

    charts.marked(figure, [charts.Mark(timezone.now(), "host-2 died", "--failed")])
    charts.threshold(figure, 10, "10 per hour")

    assert [shape["name"] for shape in figure["layout"]["shapes"]] == ["--failed", "--failed"]
    assert [word["text"] for word in figure["layout"]["annotations"]] == ["host-2 died", "10 per hour"]
    go.Figure(figure)


def test_a_threshold_far_above_the_values_does_not_flatten_them():
    figure = charts.bars([(timezone.now(), 1)], [("completed", "--done")])

    charts.threshold(figure, 10, "10 per hour")

    assert "shapes" not in figure["layout"]


def test_lines_that_end_together_are_named_one_above_the_other():
    figure = charts.lines([(timezone.now(), 2.0, 2.0, 9.0)], [("p50", "--done"), ("p95", "--done"), ("p99", "--done")])

    assert [word["yshift"] for word in figure["layout"]["annotations"]] == [0, 11, 0]


def test_marks_whose_words_have_no_room_are_only_lines():
    now = timezone.now()
    figure = charts.bars([(now - timedelta(hours=1), 1), (now, 1)], [("completed", "--done")])
    moments = [now - timedelta(minutes=ago) for ago in (30, 29, 28, 1)]

    charts.marked(figure, [charts.Mark(at, f"mark {i}") for i, at in enumerate(moments)])

    words = figure["layout"]["annotations"]
    assert len(figure["layout"]["shapes"]) == 4
    assert [(word["text"], word["yshift"]) for word in words] == [("mark 0", 0), ("mark 1", -11), ("mark 3", 0)]
    assert words[2]["xanchor"] == "right"


def test_an_unknown_chart_is_not_found(viewer):
    assert viewer.get("/charts/nonsense.json").status_code == 404
    assert viewer.get("/charts/throughput.json?range=nonsense").status_code == 404

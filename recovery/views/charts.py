"""A chart in three forms: the figure as JSON, its table, and the same as CSV."""

from typing import Any

from django.http import Http404, HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from .. import charts, frame, ranges, spreadsheet
from ..etag import unless_known
from ..queries.marks import marks
from .door import SEE, is_htmx, needs


@require_safe
@needs(SEE)
def chart(request: HttpRequest, name: str, form: str) -> HttpResponseBase:
    if name not in charts.CHARTS:
        raise Http404(f"There is no chart {name!r}; there are {', '.join(charts.CHARTS)}.")
    try:
        over = ranges.asked(request.GET)
    except ValueError as refusal:
        raise Http404(str(refusal)) from None
    drawn, only = charts.CHARTS[name], request.GET.get("name", "").replace("\0", "")[:100]
    if only and not drawn.by_name:
        raise Http404(f"The chart {name!r} is of all workflows together; leave `name` away.")
    rows = drawn.read(over, only) if only else drawn.read(over)
    if form == "csv":
        return spreadsheet.answer(f"rekindle-{name}", drawn.columns, rows)
    if form == "json":
        return unless_known(request, JsonResponse(_figure(drawn, rows, over)))
    context = {"columns": drawn.columns, "rows": reversed(rows)}
    if is_htmx(request):
        return render(request, "rekindle/chart.html#table", context)
    return render(request, "rekindle/chart.html", frame.around(request, "", name.capitalize(), range=over) | context)


def _figure(drawn: charts.Chart, rows: charts.Rows, over: ranges.Range) -> dict[str, Any]:
    found = marks(over)
    figure = charts.marked(drawn.draw(rows), found.moments)
    if drawn.metric in found.thresholds:
        limit = found.thresholds[drawn.metric]
        charts.threshold(figure, limit, f"alert at {limit:g}")
    return figure

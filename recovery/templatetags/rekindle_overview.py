"""What figures are drawn as: numbers, shares, percentiles."""

from django import template

from ..counts import Counts
from ..words import duration
from ..words import percent as share

register = template.Library()


@register.filter
def number(value: int) -> str:
    return f"{value:,}"


@register.filter
def percent(value: float | None) -> str:
    return share(value) or "–"


@register.filter
def p95(counts: Counts) -> str:
    seconds = counts.pth("took", 0.95)
    return "–" if seconds is None else duration(seconds)


@register.filter
def p50(counts: Counts) -> str:
    seconds = counts.pth("took", 0.5)
    return "–" if seconds is None else duration(seconds)

"""What only the overview draws: sentences with names in them, shares, percentiles."""

from collections.abc import Sequence

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from ..attention import Part
from ..counts import Counts
from ..words import duration
from ..words import percent as share

register = template.Library()


@register.simple_tag
def sentence(parts: Sequence[Part]) -> SafeString:
    """Names are set like code."""
    return format_html_join("", "{}", ((_part(part),) for part in parts))


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


def _part(part: Part) -> SafeString | str:
    return format_html("<code>{}</code>", part[0]) if isinstance(part, tuple) else part

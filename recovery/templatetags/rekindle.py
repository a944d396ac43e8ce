"""The small things every page is made of: icons, states, times, sparklines, buttons that copy."""

from collections.abc import Sequence
from datetime import UTC, datetime

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from .. import sparkline as line
from ..words import distance, duration

register = template.Library()


@register.simple_tag
def icon(name: str) -> SafeString:
    return format_html('<svg class="i" aria-hidden="true"><use href="#i-{}"/></svg>', name)


@register.simple_tag
def state(name: str, word: object = "") -> SafeString:
    """Icon and word, never colour alone."""
    shown = word if word != "" else name.capitalize()
    mark = '<span class="state {}"><svg class="i" aria-hidden="true"><use href="#s-{}"/></svg>{}</span>'
    return format_html(mark, name, name, shown)


@register.simple_tag
def ago(at: datetime | None) -> SafeString | str:
    """How far away a moment is; the moment itself on hover."""
    if at is None:
        return "–"
    away = (at - timezone.now()).total_seconds()
    return format_html('<time datetime="{}" title="{}">{}</time>', _iso(at), _exact(at), distance(away))


@register.simple_tag
def clock(at: datetime | None) -> SafeString | str:
    """The moment itself, in the chosen zone."""
    if at is None:
        return "–"
    return format_html('<time datetime="{}" data-as="clock">{}</time>', _iso(at), _exact(at))


@register.simple_tag
def lasting(since: datetime | None, until: datetime | None = None) -> SafeString | str:
    """How long it took; if it has not ended, how long it has been going on, ticking."""
    if since is None:
        return "–"
    if until is not None:
        return duration((until - since).total_seconds())
    so_far = duration((timezone.now() - since).total_seconds())
    return format_html('<time datetime="{}" data-as="duration">{}</time>', _iso(since), so_far)


@register.simple_tag
def copy(text: object, what: str = "id") -> SafeString:
    """Shown only where scripts run."""
    button = (
        '<button class="copy js-only" type="button" data-copy="{}" aria-label="Copy {}" title="Copy {}">'
        '<svg class="i" aria-hidden="true"><use href="#i-copy"/></svg></button>'
    )
    return format_html(button, text, what, what)


@register.simple_tag
def sparkline(values: Sequence[float], state: str = "") -> SafeString:
    drawing = (
        '<svg class="spark {}" viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true">'
        '<path class="under" d="{}"/><path class="line" d="{}"/></svg>'
    )
    return format_html(drawing, state, line.WIDTH, line.HEIGHT, line.area(values), line.path(values))


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds")


def _exact(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"

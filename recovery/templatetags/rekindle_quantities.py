"""Quantities that a row has as a number."""

from django import template

from ..words import duration

register = template.Library()


@register.filter
def took(seconds: float | None) -> str:
    return "–" if seconds is None else duration(seconds)

"""Sentences on a page: names are set in type, times tick."""

from datetime import UTC

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from ..sentences import Name, Part, Sentence, Time

register = template.Library()


@register.simple_tag
def told(sentence: Sentence) -> SafeString:
    return format_html_join("", "{}", ((_part(sentence, part),) for part in sentence))


def _part(sentence: Sentence, part: Part) -> SafeString | str:
    if isinstance(part, Name):
        return format_html("<code>{}</code>", part.text)
    if not isinstance(part, Time):
        return part
    at = part.at.astimezone(UTC)
    form = {"ago": "ago", "lasting": "duration", "moment": "moment"}[part.form]
    return format_html(
        '<time datetime="{}" title="{}" data-as="{}">{}</time>',
        at.isoformat(timespec="milliseconds"),
        f"{at:%Y-%m-%d %H:%M:%S} UTC",
        form,
        sentence.words(part),
    )

"""Where things are shown."""

from urllib.parse import urlencode

from django.urls import NoReverseMatch, reverse


def of_name(name: str) -> str:
    """The page of a name. Some cannot stand in an address, one with a line break for example: then the list of them."""
    try:
        return reverse("rekindle:name", args=[name])
    except NoReverseMatch:
        return f"{reverse('rekindle:workflows')}?{urlencode({'q': name})}"

"""DATABASE_URL, read the way libpq reads it, as Django's dictionary."""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

FORM = "postgresql://user:password@host:5432/name"


def parse(url: str) -> dict[str, Any]:
    """Host and port may also stand behind the question mark, as a Unix socket needs it; the rest there are options."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as problem:
        raise ImproperlyConfigured(f"DATABASE_URL cannot be read ({problem}); it looks like {FORM}.") from None
    name = unquote(parts.path.removeprefix("/"))
    if parts.scheme not in ("postgres", "postgresql") or not name:
        raise ImproperlyConfigured(f"DATABASE_URL must name a PostgreSQL database; it looks like {FORM}.")
    options = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", unquote(parts.hostname or "")),
        "PORT": options.pop("port", str(port or "")),
        "OPTIONS": {"application_name": "rekindle"} | options,
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,  # a restarted Postgres costs a reconnect, not a failed request
    }

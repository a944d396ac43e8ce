"""For a host whose engine has a database of its own: `DATABASE_ROUTERS = ["workflows.routing.Router"]`."""

from typing import Any

from django.db.models import Model

from .conf import settings

OURS = ("rekindle", "rekindle_recovery")


class Router:
    """Both apps live in the database that REKINDLE names, and nowhere else. About other apps it says nothing."""

    def db_for_read(self, model: type[Model], **_: Any) -> str | None:
        return settings().database if model._meta.app_label in OURS else None

    def db_for_write(self, model: type[Model], **_: Any) -> str | None:
        return self.db_for_read(model)

    def allow_migrate(self, db: str, app_label: str, **_: Any) -> bool | None:
        return db == settings().database if app_label in OURS else None

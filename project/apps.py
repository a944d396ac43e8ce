import os

from django.apps import AppConfig
from django.conf import settings


class ProjectConfig(AppConfig):
    """Makes `up` findable, and lets the demo's workers be killed. Has no models."""

    name = "project"
    label = "rekindle_project"
    verbose_name = "Rekindle project"

    def ready(self) -> None:
        from project import descent
        from recovery import killing

        if os.environ.get(descent.TOLD) and not settings.PRODUCTION:
            killing.may_kill.append(descent.is_of_this_up)

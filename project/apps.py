import os

from django.apps import AppConfig
from django.conf import settings


class ProjectConfig(AppConfig):
    """Makes `up` findable, offers the demo, and lets its workers be killed. Has no models."""

    name = "project"
    label = "rekindle_project"
    verbose_name = "Rekindle project"

    def ready(self) -> None:
        from project import descent
        from project.demo import seed
        from recovery import demo, killing

        if not settings.PRODUCTION:
            demo.starters.append(seed)
        if os.environ.get(descent.TOLD) and not settings.PRODUCTION:
            killing.may_kill.append(descent.is_of_this_up)

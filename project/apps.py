from django.apps import AppConfig


class ProjectConfig(AppConfig):
    """Makes `up` findable. Has no models."""

    name = "project"
    label = "rekindle_project"
    verbose_name = "Rekindle project"

from django.apps import AppConfig


class WorkflowsConfig(AppConfig):
    name = "workflows"
    label = "rekindle"
    verbose_name = "Rekindle"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from . import checks  # noqa: F401  (registers them)

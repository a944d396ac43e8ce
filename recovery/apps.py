from typing import Any

from django.apps import AppConfig, apps
from django.db import router
from django.db.models.signals import post_migrate


class RecoveryConfig(AppConfig):
    name = "recovery"
    label = "rekindle_recovery"
    verbose_name = "Rekindle recovery"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from workflows import commands, takeover, worker

        from . import commands as ours
        from . import questions, rescues, standby, watch
        from .batches import hands

        takeover.witnesses.append(rescues.record)
        worker.lookouts += [watch.Watch().look_out, standby.Standby().look_out, hands.Hands().look_out]
        commands.VERBS.update(ours.VERBS | questions.VERBS)
        if apps.is_installed("django_q"):
            from django_q.signals import post_spawn

            from .starting_up import on_spawn

            post_spawn.connect(on_spawn)
        post_migrate.connect(_after_migrate, sender=self)


def _after_migrate(using: str = "default", **_: Any) -> None:
    """Users, schedules and the engine may each have a database of their own; each part is made as its own is migrated."""
    from django.contrib.auth.models import Permission

    from workflows.conf import settings

    from . import roles, rules, schedules

    if using == router.db_for_write(Permission):
        _make_permissions(using)
        roles.synchronise()
    schedules.synchronise()
    if using == settings().database:
        rules.install()


def _make_permissions(using: str) -> None:
    """Django makes them in its own post_migrate handler, which may run after ours."""
    from django.contrib.auth.management import create_permissions

    for label in ("rekindle", "rekindle_recovery"):
        create_permissions(apps.get_app_config(label), verbosity=0, using=using)

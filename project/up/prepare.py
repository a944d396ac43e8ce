"""What has to be there before the first process starts. Each is harmless when it is there already."""

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import connection

from project.secret import kept

ROLES = ("viewer", "operator", "admin")
MIGRATING = 7_261_100  # any number: who holds this advisory lock may migrate


def tables() -> None:
    """Two who come up on one database at once take turns."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [MIGRATING])
    try:
        call_command("migrate", interactive=False, verbosity=0)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATING])


def static_files() -> None:
    call_command("collectstatic", interactive=False, verbosity=0)


def people() -> dict[str, str]:
    """One for each role, with the password this data directory has for it. Who exists already is left alone."""
    passwords = {role: kept(settings.DATA_DIR, f"password-{role}", 9) for role in ROLES}
    users = get_user_model()._default_manager
    for role, password in passwords.items():
        if users.filter(username=role).exists():
            continue
        create = users.create_superuser if role == "admin" else users.create_user
        user = create(role, password=password)
        group, _ = Group.objects.get_or_create(name=f"Rekindle {role}")
        user.groups.add(group)
    return passwords


def nobody_is_there() -> bool:
    return not get_user_model()._default_manager.exists()


def demo() -> None:
    """Once, while the database is still empty."""
    from project.demo import seed
    from workflows.models import Workflow

    if not Workflow.objects.exists():
        seed()

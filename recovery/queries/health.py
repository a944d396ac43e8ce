from django.db import connections

from workflows.conf import settings


def ping() -> None:
    """Raises if the database does not answer."""
    with connections[settings().database].cursor() as cursor:
        cursor.execute("SELECT 1")

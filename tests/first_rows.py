"""The test database as its migrations left it, for the price of what a test has touched.

After a test that commits Django empties every table, used or not, and lets every app make its first rows anew. Here those
rows are remembered once, and only tables that are no longer what they were are emptied and filled again.
"""

from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction


class FirstRows:
    """What is in the tables of all apps now."""

    def __init__(self) -> None:
        self.tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
        with connection.cursor() as cursor:
            self.rows = {table: rows for table in self.tables if (rows := _read(cursor, table))}

    @transaction.atomic
    def restore(self) -> None:
        """The lock waits for the last statements of whoever was killed: what they write is found too."""
        with connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {', '.join(self.tables)} IN ACCESS EXCLUSIVE MODE")
            if touched := [*self._changed(cursor), *self._grown(cursor)]:
                cursor.execute(f"TRUNCATE {', '.join(touched)} CASCADE")
            for table in self._changed(cursor) if touched else ():
                with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                    copy.write(self.rows[table])
        ContentType.objects.clear_cache()

    def _changed(self, cursor: Any) -> list[str]:
        return [table for table, rows in self.rows.items() if _read(cursor, table) != rows]

    def _grown(self, cursor: Any) -> list[str]:
        """Those that began without rows and take up room, be it that of rows which are gone."""
        empty = [table for table in self.tables if table not in self.rows]
        cursor.execute(
            "SELECT name FROM unnest(%s::text[]) AS name WHERE pg_relation_size(name::regclass) > 0", [empty]
        )
        return [name for (name,) in cursor.fetchall()]


def _read(cursor: Any, table: str) -> bytes:
    with cursor.copy(f"COPY {table} TO STDOUT") as copy:
        return b"".join(bytes(part) for part in copy)

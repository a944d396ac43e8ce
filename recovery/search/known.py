"""What there is to name: workflow names and fields of inputs. Asked for only when a search needs it."""

from functools import cached_property
from time import monotonic

from django.db import connections

from workflows.conf import settings
from workflows.definitions import discover

# A probe for each name in the index of the keys, however many workflows each has.
NAMES = """WITH RECURSIVE names(name) AS (
    (SELECT name FROM rekindle_workflow ORDER BY name LIMIT 1)
    UNION ALL
    SELECT (SELECT w.name FROM rekindle_workflow w WHERE w.name > names.name ORDER BY w.name LIMIT 1)
    FROM names WHERE names.name IS NOT NULL
) SELECT name FROM names WHERE name IS NOT NULL LIMIT 1000"""


LATELY = 60.0  # seconds for which a poll trusts what a page read
_read: tuple[float, list[str]] = (float("-inf"), [])


class Known:
    def __init__(self, *, lately: bool = False) -> None:
        """A poll is content with the names that were there lately: it saves it a question every few seconds."""
        self.lately = lately

    @cached_property
    def names(self) -> list[str]:
        global _read
        if not self.lately or monotonic() - _read[0] > LATELY:
            with connections[settings().database].cursor() as cursor:
                cursor.execute(NAMES)
                _read = monotonic(), [name for (name,) in cursor.fetchall()]
        return _read[1]

    @cached_property
    def fields(self) -> list[str]:
        """Those a definition names with search=: only they were copied to where an index finds them."""
        return sorted({field for definition in discover().values() for field in definition.search})

"""The baskets of people: those that something waits in, and those the settings name."""

from django.db import connections

from workflows.baskets import kind_of
from workflows.conf import settings

# A CTE that ends in `used`: a probe of the index for each basket, however many wait there.
USED = """each_basket(basket) AS (
    (SELECT basket FROM rekindle_step WHERE status = 'waiting' AND basket <> '' ORDER BY basket LIMIT 1)
    UNION ALL
    SELECT (SELECT s.basket FROM rekindle_step s WHERE s.status = 'waiting' AND s.basket <> '' AND s.basket > each_basket.basket
        ORDER BY s.basket LIMIT 1)
    FROM each_basket WHERE each_basket.basket IS NOT NULL
), used AS (SELECT basket FROM each_basket WHERE basket IS NOT NULL AND left(basket, 7) <> 'signal:' LIMIT 100)"""


def places() -> list[str]:
    """Where a person may be asked to look, by name."""
    with connections[settings().database].cursor() as cursor:
        cursor.execute(f"WITH RECURSIVE {USED} SELECT basket FROM used")  # noqa: S608  (constant)
        used = {basket for (basket,) in cursor.fetchall()}
    return sorted(basket for basket in used | set(settings().baskets or ()) if kind_of(basket) != "retry")

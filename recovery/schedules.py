"""The duties' schedules in django-q2: one row each, `rekindle:<duty>`, every minute, put right whenever somebody looks.

Whoever migrates, whichever cluster starts, and the duty of this name put them right: a row that is missing, doubled
or was changed comes back as it is declared. A malformed row is worse than a missing one, because it stops django-q2
from reading any. Only rows named `rekindle:*` are ever touched.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.db import connections, router, transaction
from django.utils import timezone

from workflows.conf import settings

from .bounds import bounded
from .tally import Tally

PREFIX = "rekindle:"
SYNCHRONISING = 7_261_102  # any number: who holds this advisory lock may put the schedules right
LONGEST = 10.0  # seconds
ASTRAY = timedelta(minutes=2)  # a next run that far away, either way, is not one of ours


def synchronise() -> int:
    """Make the rows what they should be. Returns how many were not."""
    if not apps.is_installed("django_q"):
        return 0
    from django_q.models import Schedule

    database = router.db_for_write(Schedule)
    if Schedule._meta.db_table not in connections[database].introspection.table_names():
        return 0  # its own migrations are still to come, and ours are looked at again as its cluster starts
    with bounded(database, LONGEST), transaction.atomic(using=database):
        with connections[database].cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [SYNCHRONISING])
        rows = Schedule.objects.using(database).filter(name__startswith=PREFIX)
        return sum(_put_right(rows, name, wanted) for name, wanted in _declared()) + _remove_strangers(rows)


def repair(ran_by: str, deadline: float) -> Tally:
    """The duty: found is what was wrong, and it is right again."""
    wrong = synchronise()
    return Tally(found=wrong, recovered=wrong)


def _declared() -> Iterator[tuple[str, dict[str, Any]]]:
    from .duties import DUTIES, patience

    # Nothing is kept of a run but its Duty record, and none is tried again: the next one is a minute away.
    options = {"save": False, "ack_failure": True, "timeout": patience()}
    for name, declared in DUTIES.items():
        yield (
            PREFIX + name,
            {
                "func": "recovery.duties.scheduled",
                "args": repr(name),
                "kwargs": repr({"q_options": options}),
                "hook": None,
                "schedule_type": "I",
                "minutes": max(1, round(declared.every / 60)),
                "repeats": -1,
                "cron": None,
                "cluster": settings().cluster or None,
                "intended_date_kwarg": None,
            },
        )


def _put_right(rows: Any, name: str, wanted: dict[str, Any]) -> int:
    """One row of that name, as declared. Its next run is left alone unless it is astray: old ones would be caught up."""
    now = timezone.now()
    found = list(rows.filter(name=name).order_by("pk").values("pk", "next_run", *wanted))
    if not found:
        rows.model.objects.using(rows.db).create(name=name, next_run=now, **wanted)
        return 1
    kept, *doubles = found
    wrong = {field: value for field, value in wanted.items() if kept[field] != value}
    if kept["next_run"] is None or abs(kept["next_run"] - now) > ASTRAY:
        wrong["next_run"] = now
    if wrong:
        rows.filter(pk=kept["pk"]).update(**wrong)
    rows.filter(pk__in=[double["pk"] for double in doubles]).delete()
    return int(bool(wrong or doubles))


def _remove_strangers(rows: Any) -> int:
    count: int = rows.exclude(name__in=[name for name, _ in _declared()]).delete()[0]
    return count

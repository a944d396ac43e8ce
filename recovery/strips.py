"""What is wrong with Rekindle itself, for the top of every page: the verdict on the whole, and where more is told."""

from dataclasses import dataclass

from django.db.models import Q
from django.utils import timezone

from workflows.conf import settings
from workflows.models import Policy, Worker

from .models import Duty
from .models.recovery import DetectedBy
from .verdict import Kind, Verdict, Whole, of_whole

PAGES = {Kind.NO_WORKER: "workers", Kind.NO_SCHEDULER: "workers", Kind.NOT_ENFORCED: "recovery"}
POLICIES = 5  # shown


@dataclass(frozen=True, slots=True)
class Strip:
    verdict: Verdict
    page: str = ""  # the rail's name of the page that tells more


def strips() -> list[Strip]:
    return [Strip(verdict, PAGES.get(verdict.kind, "")) for verdict in of_whole(_seen())]


def _seen() -> Whole:
    database = settings().database
    ran = Duty.objects.using(database).filter(name="sweep", ran_by=DetectedBy.SCHEDULED_TASK).order_by("-began_at")
    changed = Policy.objects.using(database).filter(Q(paused=True) | Q(mode__in=["observe", "off"]))
    return Whole(
        now=timezone.now(),
        live_workers=int(Worker.objects.using(database).filter(ended_at=None).exists()),
        scheduler_ran=ran.values_list("began_at", flat=True).first(),
        mode=settings().mode,
        policies=list(changed.order_by("name")[:POLICIES]),
    )

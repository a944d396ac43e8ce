"""The pages of the dashboard, in the order of the rail. A page is shown as soon as its URL exists."""

from collections.abc import Callable
from dataclasses import dataclass

from django.urls import NoReverseMatch, reverse

from workflows.conf import settings

from .models import Alert, Recovery
from .models.recovery import Outcome


@dataclass(frozen=True, slots=True)
class Page:
    name: str  # of its URL, and of its icon
    word: str
    letter: str  # `g` and this letter go there
    count: Callable[[], int] | None = None  # what needs attention
    state: str = "failed"  # how urgent the count looks
    meaning: str = ""  # what it counts, for those who hear the page


@dataclass(frozen=True, slots=True)
class Entry:
    page: Page
    url: str
    here: bool
    count: str


def recoveries_under_way() -> int:
    return Recovery.objects.using(settings().database).filter(outcome=Outcome.PENDING)[:MOST].count()


def open_alerts() -> int:
    return Alert.objects.using(settings().database).filter(resolved_at=None)[:MOST].count()


MOST = 100
PAGES = (
    Page("overview", "Overview", "o"),
    Page("workflows", "Workflows", "w"),
    Page("recovery", "Recovery", "r", recoveries_under_way, "orphan", "under way"),
    Page("alerts", "Alerts", "a", open_alerts, "failed", "open"),
    Page("jobs", "Jobs", "j"),
    Page("workers", "Workers", "k"),
    Page("audit", "Audit", "u"),
)


def entries(here: str, *, counted: bool = True) -> list[Entry]:
    """What the rail shows. Uncounted while the database is away."""
    return [
        Entry(page, url, page.name == here, _said(page) if counted else "")
        for page in PAGES
        if (url := address(f"rekindle:{page.name}"))
    ]


def address(name: str) -> str:
    """Of a page that may not exist here; empty if it does not."""
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""


def _said(page: Page) -> str:
    count = page.count() if page.count else 0
    return f"{MOST - 1}+" if count >= MOST else str(count or "")

"""The pages of the dashboard, in the order of the rail. A page is shown as soon as its URL exists."""

from dataclasses import dataclass

from django.urls import NoReverseMatch, reverse

from .queries.together import together

MOST = 100


@dataclass(frozen=True, slots=True)
class Page:
    name: str  # of its URL, and of its icon
    word: str
    letter: str  # `g` and this letter go there
    count: str = ""  # SQL: what needs attention
    state: str = "failed"  # how urgent the count looks
    meaning: str = ""  # what it counts, for those who hear the page


@dataclass(frozen=True, slots=True)
class Entry:
    page: Page
    url: str
    here: bool
    count: str


UNDER_WAY = f"SELECT FROM rekindle_recovery_recovery WHERE outcome = 'pending' LIMIT {MOST}"
OPEN = f"SELECT FROM rekindle_recovery_alert WHERE resolved_at IS NULL LIMIT {MOST}"
PAGES = (
    Page("overview", "Overview", "o"),
    Page("workflows", "Workflows", "w"),
    Page("recovery", "Recovery", "r", UNDER_WAY, "orphan", "under way"),
    Page("alerts", "Alerts", "a", OPEN, "failed", "open"),
    Page("jobs", "Jobs", "j"),
    Page("workers", "Workers", "k"),
    Page("audit", "Audit", "u"),
)


def entries(here: str, *, counted: bool = True) -> list[Entry]:
    """What the rail shows. Uncounted while the database is away."""
    pages = [(page, url) for page in PAGES if (url := address(f"rekindle:{page.name}"))]
    counts = _counts([page for page, _ in pages]) if counted else {}
    return [Entry(page, url, page.name == here, _said(counts.get(page.name, 0))) for page, url in pages]


def address(name: str) -> str:
    """Of a page that may not exist here; empty if it does not."""
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""


def _counts(pages: list[Page]) -> dict[str, int]:
    """All of them in one question: every page has a rail, and asks for it again every few seconds."""
    questions = {page.name: f"SELECT count(*) AS count FROM ({page.count}) AS found" for page in pages if page.count}  # noqa: S608
    return {name: rows[0]["count"] for name, rows in together({}, **questions).items()} if questions else {}


def _said(count: int) -> str:
    return f"{MOST - 1}+" if count >= MOST else str(count or "")

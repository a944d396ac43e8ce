"""The two sizes, and how their workflows are spread.

The small one draws the same pages: it has every state and every name, enough of each to fill a page, as many workers, and
as many days of figures. What is compared is the size of the tables, not of the answer.
"""

from dataclasses import dataclass
from datetime import timedelta

SPAN = timedelta(days=29)  # retention, which removes what ended a month ago, finds nothing yet

# A dozen names, by how many workflows of a hundred thousand have them.
NAMES = {
    "order": 30_000,
    "payment": 18_000,
    "invoice": 12_000,
    "shipment": 10_000,
    "email": 9_000,
    "webhook": 7_000,
    "import_catalogue": 5_000,
    "newsletter": 4_000,
    "refund": 3_000,
    "birthday_message": 1_500,
    "report": 450,
    "year_end": 50,
}
NONE_IS_RARE = {name: max(share, 7_000) for name, share in NAMES.items()}
SEARCHABLE = ("order", "payment")  # those whose customer can be searched for
STEPS = ("load_customer", "charge_card", "save_invoice")
BASKETS = ("fraud-review", "fraud-review", "approval", "crash_review", "workflow_error")
ERRORS = ("TimeoutError", "ConnectionError", "ValueError", "PermissionError")  # of steps


@dataclass(frozen=True)
class Size:
    """How much there is of everything. What is in no other state is completed."""

    name: str
    workflows: int
    states: dict[str, int]
    recoveries: int
    workers: int  # alive
    deaths: int  # workers that died, over the whole span
    audit: int
    alerts: int
    late: int  # one of so many was taken late
    names: dict[str, int]

    @property
    def database(self) -> str:
        return f"pages_{self.name}"


# How young a state is: the share of the newest workflows that may have it. The rest of them are finished.
YOUNG = {
    "queued": 0.005,
    "orphan": 0.005,
    "running": 0.02,
    "retry": 0.05,
    "blocked": 0.1,
    "suspended": 0.1,
    "pend": 0.3,
    "pending": 0.5,
    "sleep": 0.8,
    "cancelled": 1,
    "failed": 1,
}
SMALL = Size(
    "small",
    1_000,
    {
        "queued": 55,
        "orphan": 55,
        "running": 80,
        "retry": 55,
        "blocked": 55,
        "suspended": 55,
        "pend": 250,
        "pending": 55,
        "sleep": 60,
        "cancelled": 55,
        "failed": 60,
    },
    recoveries=120,
    workers=40,
    deaths=400,
    audit=400,
    alerts=60,
    late=10,
    names=NONE_IS_RARE,
)
LARGE = Size(
    "large",
    1_000_000,
    {
        "queued": 1_500,
        "orphan": 60,
        "running": 2_400,
        "retry": 2_000,
        "blocked": 300,
        "suspended": 100,
        "pend": 15_000,
        "pending": 8_000,
        "sleep": 60_000,
        "cancelled": 8_000,
        "failed": 20_000,
    },
    recoveries=20_000,
    workers=40,
    deaths=400,
    audit=50_000,
    alerts=3_000,
    late=250,
    names=NAMES,
)
SIZES = (SMALL, LARGE)

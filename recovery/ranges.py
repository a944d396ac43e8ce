"""The time range of a page: `?range=24h`, or `?from=…&to=…` in UTC."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.utils import timezone

RANGES = {
    "15m": ("15 m", timedelta(minutes=15)),
    "1h": ("1 h", timedelta(hours=1)),
    "24h": ("24 h", timedelta(hours=24)),
    "7d": ("7 d", timedelta(days=7)),
    "30d": ("30 d", timedelta(days=30)),
}
STEPS = [15, 60, 300, 900, 3600, 3 * 3600, 12 * 3600, 86400]
BARS = 96  # as many as a chart shows well
LONGEST = timedelta(days=400)


@dataclass(frozen=True, slots=True)
class Range:
    key: str  # of RANGES, or "custom"
    start: datetime
    end: datetime

    @property
    def step(self) -> timedelta:
        """How much time one bar of a chart covers."""
        seconds = (self.end - self.start).total_seconds()
        return timedelta(seconds=next((step for step in STEPS if seconds / step <= BARS), STEPS[-1]))

    @property
    def words(self) -> str:
        if self.key in RANGES:
            return f"last {RANGES[self.key][0]}"
        return f"{self.start:%-d %b %H:%M} – {self.end:%-d %b %H:%M} UTC"


def asked(query: Mapping[str, str], default: str = "24h") -> Range:
    """Raises ValueError with a sentence if the address means nothing."""
    if query.get("from") or query.get("to"):
        return _custom(query.get("from") or "", query.get("to") or "")
    key = query.get("range") or default
    if key not in RANGES:
        raise ValueError(f"There is no range {key!r}; there are {', '.join(RANGES)}, or from and to.")
    now = timezone.now()
    return Range(key, now - RANGES[key][1], now)


def _custom(start: str, end: str) -> Range:
    begun, ended = _moment(start), _moment(end) if end else timezone.now()
    if not begun < ended:
        raise ValueError("The range must begin before it ends.")
    if ended - begun > LONGEST:
        raise ValueError(f"The range is longer than the {LONGEST.days} days that are kept.")
    return Range("custom", begun, ended)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{text[:40]!r} is not a time; write it like 2026-01-31T09:00.") from None

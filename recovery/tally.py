"""What a run of a duty has to tell, counted as C37 asks."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Tally:
    found: int = 0
    recovered: int = 0
    failed: int = 0
    held: int = 0
    skipped: int = 0
    note: dict[str, Any] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        return {
            "found": self.found,
            "recovered": self.recovered,
            "failed": self.failed,
            "held": self.held,
            "skipped": self.skipped,
        }

    @property
    def quiet(self) -> bool:
        """Nothing to speak of: what retention may thin out early."""
        return not (self.found or self.recovered or self.failed)

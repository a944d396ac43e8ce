"""What Rekindle must reach, side by side with its peers (design, section 6)."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Literal

Samples = dict[str, dict[str, list[float]]]  # engine -> figure -> what each round measured


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure, how its samples become one number, and what is asked of it."""

    group: str
    figure: str
    title: str
    form: str
    best: Literal["high", "low"]
    asks: str = ""
    most: float | None = None
    least: float | None = None
    times: dict[str, float] | None = None
    of: Callable[[list[float]], float] = median

    def value(self, samples: Samples, engine: str) -> float | None:
        found = samples.get(engine, {}).get(self.figure)
        return self.of(found) if found else None

    def ratio(self, samples: Samples, engine: str) -> float | None:
        """How many times better than that engine; above one is better, whichever way the figure runs."""
        ours, theirs = self.value(samples, "rekindle"), self.value(samples, engine)
        if not ours or not theirs:
            return None
        return ours / theirs if self.best == "high" else theirs / ours

    def reached(self, samples: Samples) -> bool | None:
        """None: nothing is asked, or what it is compared with was not measured in this run."""
        ours = self.value(samples, "rekindle")
        if not self.asks:
            return None
        if ours is None:
            return False
        answers = []
        if self.most is not None:
            answers.append(ours <= self.most)
        if self.least is not None:
            answers.append(ours >= self.least)
        for engine, times in (self.times or {}).items():
            ratio = self.ratio(samples, engine)
            if ratio is not None:
                answers.append(ratio >= times)
        return all(answers) if answers else None


# fmt: off
ROWS = [
    Row("drain", "drain", "drain, 2,000 workflows × 3 steps, 2 processes, per s", "{:,.0f}", "high",
        "≥ 12 × DBOS, ≥ 10 × absurd", times={"dbos": 12, "absurd": 10}),
    Row("starts", "starts", "starts accepted, one by one, per s", "{:,.0f}", "high", "≥ 1,200", least=1_200),
    Row("starts", "bulk", "starts accepted, in bulk, per s", "{:,.0f}", "high", "≥ 15,000", least=15_000),
    Row("steps", "step", "one workflow of 1,000 steps, ms a step", "{:.3f}", "low", "≤ 0.6", most=0.6),
    Row("steps", "step_lazy", "  the same, persistence lazy, ms a step", "{:.3f}", "low", "≤ 0.05", most=0.05),
    Row("latency", "p50", "start → completed when idle, p50, ms", "{:.1f}", "low", "≤ 10", most=10),
    Row("latency", "p99", "start → completed when idle, p99, ms", "{:.1f}", "low", "≤ 20", most=20),
    Row("memory", "rss", "worker process, 64 in flight, RSS MB", "{:.0f}", "low", "≤ 90", most=90),
    Row("memory", "pss", "  its PSS, MB", "{:.0f}", "low"),
    Row("memory", "family_pss", "  PSS with its supervisor, MB", "{:.0f}", "low"),
    Row("crash", "takeover", "kill -9 one of two → its 200 run again, median, s", "{:.2f}", "low", "≤ 1.5", most=1.5),
    Row("crash", "takeover", "  the worst of them, s", "{:.2f}", "low", "≤ 3", most=3, of=max),
    Row("crash", "takeover_first", "  the first of the 200, s", "{:.2f}", "low"),
    Row("crash", "restart", "kill -9 all, restart → 200 run again, from up, s", "{:.2f}", "low", "≤ 1.5", most=1.5),
    Row("crash", "restart", "  the worst of them, s", "{:.2f}", "low", of=max),
    Row("crash", "restart_from_spawn", "  the same, from starting the process, s", "{:.2f}", "low"),
    Row("crash", "rerun", "finished steps run again, all crashes together", "{:.0f}", "low", "0", most=0, of=sum),
    Row("crash", "bodies_twice", "  bodies run again in all (finished or not)", "{:.0f}", "low"),
    Row("sweep", "sweep", "sweep, 1,000,000 paused, 10,000 held, none dead, ms", "{:.1f}", "low", "≤ 10", most=10),
    Row("sweep", "sweep_p99", "  its p99, ms", "{:.1f}", "low"),
]
# fmt: on

"""The figures side by side."""

from math import isinf

from .bars import ROWS, Row, Samples

LABELS = {"rekindle": "Rekindle", "dbos": "DBOS", "absurd": "absurd"}


def draw(samples: Samples, groups: list[str], engines: list[str], patience: float) -> str:
    """One line for each figure that was asked for; a missed bar is written out, not only marked."""
    others = [engine for engine in engines if engine != "rekindle"]
    head = ["", *(LABELS[engine] for engine in engines)]
    ours = "rekindle" in engines
    if ours:
        head += [f"× {LABELS[engine]}" for engine in others] + ["bar", ""]
    lines = [head]
    for row in ROWS:
        if row.group in groups:
            lines.append([row.title, *(_figure(row, samples, engine, patience) for engine in engines)])
            if ours:
                lines[-1] += [_ratio(row, samples, engine) for engine in others]
                lines[-1] += [row.asks, _verdict(row.reached(samples), row)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    lines.insert(1, ["─" * width for width in widths])
    return "\n".join(
        "  ".join(_place(cell, width, i) for i, (cell, width) in enumerate(zip(line, widths, strict=True))).rstrip()
        for line in lines
    )


def _place(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column == 0 else cell.rjust(width)


def _figure(row: Row, samples: Samples, engine: str, patience: float) -> str:
    value = row.value(samples, engine)
    if value is None:
        return "–"
    return f"> {patience:.0f}" if isinf(value) else row.form.format(value)


def _ratio(row: Row, samples: Samples, engine: str) -> str:
    ratio = row.ratio(samples, engine)
    return "–" if ratio is None or isinf(ratio) else f"{ratio:.1f}"


def _verdict(reached: bool | None, row: Row) -> str:
    if reached is None:
        return "not compared" if row.asks else ""
    return "reached" if reached else "MISSED"

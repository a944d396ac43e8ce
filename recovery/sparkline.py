"""A small line without axes, as the path of an SVG. It is as wide as its place and says only how things went."""

from collections.abc import Sequence

WIDTH, HEIGHT, EDGE = 120, 26, 2


def path(values: Sequence[float]) -> str:
    """Empty for fewer than two values: one value went nowhere."""
    if len(values) < 2:
        return ""
    least, most = min(*values, 0), max(values)
    span = (most - least) or 1
    across, up = WIDTH / (len(values) - 1), HEIGHT - 2 * EDGE
    points = [f"{i * across:.1f} {HEIGHT - EDGE - (value - least) / span * up:.1f}" for i, value in enumerate(values)]
    return "M" + "L".join(points)


def area(values: Sequence[float]) -> str:
    line = path(values)
    return f"{line}L{WIDTH} {HEIGHT}L0 {HEIGHT}Z" if line else ""

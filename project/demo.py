"""The demo's work: some history once, and a trickle from then on. The workflows are in `workflows.py` beside this."""

import random
import secrets

from workflows import start, start_many


def seed() -> None:
    """Enough to look at when the page first opens; a worker makes it history within seconds."""
    start_many("order", [_order() for _ in range(40)])
    start_many("newsletter", [{"edition": edition} for edition in range(1, 15)])
    start("import_catalogue", {"pages": 40})
    for _ in range(4):
        _video()


def trickle() -> None:
    """Called every two seconds."""
    start("order", _order(), key=f"ORD-{secrets.token_hex(3).upper()}")
    if random.random() < 0.1:
        start("import_catalogue", {"pages": random.randint(5, 30)})
    if random.random() < 0.2:
        start("newsletter", {"edition": random.randint(1, 60)})
    if random.random() < 0.3:
        _video()


def _video() -> None:
    """Half a minute each: some are always in somebody's hands."""
    number = secrets.token_hex(2).upper()
    start("video", {"title": f"trip-{number.lower()}"}, key=f"VID-{number}")


def _order() -> dict[str, object]:
    return {"order_id": secrets.token_hex(4), "customer": random.randint(1, 200)}

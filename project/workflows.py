"""Workflows of the demo: short, with something to wait for, and now and then something that goes wrong."""

import random
import time
from datetime import timedelta
from typing import Any

from project.birthday import birthday_message
from workflows import Run, workflow

__all__ = ["birthday_message"]  # defined beside this; a worker finds it here


@workflow("order", search=("customer",))
def order(run: Run, order_id: str, customer: int) -> dict[str, Any]:
    """Checks side by side, a card to charge, a nap, an invoice."""
    run.step(load_customer, customer)
    fraud, stock = run.parallel("checks", fraud=check_fraud, stock=reserve_stock)
    if fraud["score"] > 0.97:
        run.pend("fraud-review")
    run.step(charge_card, order_id, retries=4, backoff=0.5, idempotent=True)
    run.sleep(timedelta(seconds=2))
    return {"invoice": run.step(save_invoice, order_id), "stock": stock}


@workflow("import_catalogue")
def import_catalogue(run: Run, pages: int) -> int:
    """A long one: a page at a time, each recorded."""
    return sum(run.step(fetch_page, page, name=f"page {page}") for page in range(pages))


@workflow("video", search=("title",))
def video(run: Run, title: str) -> dict[str, str]:
    """Steps that take a while: whoever kills a worker finds it in the middle of some."""
    length = run.step(probe, title)
    small, large = run.parallel("encode", small=encode_small, large=encode_large)
    run.step(thumbnails, length)
    return {"published": run.step(publish, title, idempotent=True), "small": small, "large": large}


@workflow("newsletter")
def newsletter(run: Run, edition: int) -> str:
    """Fails for good when its edition is a multiple of seven, so that there are dead letters to look at."""
    run.step(render, edition)
    return str(run.step(send, edition, retries=2, backoff=0.3))


def load_customer(customer: int) -> dict[str, Any]:
    time.sleep(random.uniform(0.01, 0.05))
    return {"customer": customer, "name": f"Customer {customer}"}


def check_fraud(run: Run) -> dict[str, float]:
    return dict(run.step(score, name="score"))


def reserve_stock(run: Run) -> str:
    return str(run.step(reserve, name="reserve"))


def score() -> dict[str, float]:
    time.sleep(random.uniform(0.05, 0.3))
    return {"score": round(random.random(), 3)}


def reserve() -> str:
    time.sleep(random.uniform(0.05, 0.2))
    return "reserved"


def charge_card(order_id: str) -> str:
    time.sleep(random.uniform(0.1, 0.6))
    if random.random() < 0.1:
        raise TimeoutError("the card service did not answer")
    return f"charge-{order_id}"


def save_invoice(order_id: str) -> str:
    return f"INV-{order_id}"


def fetch_page(page: int) -> int:
    time.sleep(random.uniform(0.3, 0.9))
    return 100


def probe(title: str) -> int:
    time.sleep(random.uniform(0.5, 1.5))
    return len(title) * 60


def encode_small(run: Run) -> str:
    return str(run.step(encode, 480, 5.0, name="480p", idempotent=True))


def encode_large(run: Run) -> str:
    return str(run.step(encode, 1080, 9.0, name="1080p", idempotent=True))


def encode(lines: int, seconds: float) -> str:
    time.sleep(random.uniform(seconds, seconds * 1.6))
    return f"{lines}p.mp4"


def thumbnails(length: int) -> int:
    time.sleep(random.uniform(4, 8))
    return length // 10


def publish(title: str) -> str:
    time.sleep(random.uniform(0.2, 0.6))
    return f"/watch/{title}"


def render(edition: int) -> str:
    return f"edition {edition}"


def send(edition: int) -> str:
    time.sleep(0.1)
    if edition % 7 == 0:
        raise ConnectionError("the mail server refused the connection")
    return "sent"

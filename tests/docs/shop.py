"""The shop of the examples: what they import as `shop` and `shop.models`."""

from types import SimpleNamespace
from typing import Any

from django.db import models


class Invoice(models.Model):
    order_id = models.CharField(max_length=20, unique=True)

    class Meta:
        app_label = "shop"

    def __str__(self) -> str:
        return self.order_id


class Stock(models.Model):
    item = models.CharField(max_length=20)
    left = models.IntegerField()

    class Meta:
        app_label = "shop"

    def __str__(self) -> str:
        return self.item


class OrderItem(models.Model):
    order_id = models.CharField(max_length=20)
    item_id = models.CharField(max_length=20)
    quantity = models.IntegerField()

    class Meta:
        app_label = "shop"
        constraints = [models.UniqueConstraint(fields=["order_id", "item_id"], name="shop_one_item")]

    def __str__(self) -> str:
        return self.item_id


class Mail:
    """A mail server that remembers what it sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []

    def was_sent(self, case: str, kind: str) -> bool:
        return (case, kind) in self.sent

    def send(self, case: str, kind: str) -> None:
        self.sent.append((case, kind))


class Orders:
    """A supplier that makes one order of each key."""

    def __init__(self) -> None:
        self.calls = 0
        self.made: dict[str, str] = {}

    def create(self, items: list[str], idempotency_key: str) -> str:
        self.calls += 1
        return self.made.setdefault(idempotency_key, f"O{len(self.made) + 1}")


class Bank:
    """Charges each key once."""

    def __init__(self) -> None:
        self.charges: list[int] = []
        self.known: dict[str, str] = {}

    def charge(self, cents: int, key: str) -> str:
        if key not in self.known:
            self.charges.append(cents)
            self.known[key] = f"T{len(self.charges)}"
        return self.known[key]


def opened() -> dict[str, Any]:
    """A new shop, by the names of its modules."""
    return {
        "shop": SimpleNamespace(mail=Mail(), orders=Orders(), bank=Bank()),
        "shop.models": SimpleNamespace(Invoice=Invoice, Stock=Stock, OrderItem=OrderItem),
    }

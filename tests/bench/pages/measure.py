"""How long it took, and how many queries. The two databases take turns, so that whatever the machine does, it does to both."""

import gc
import html
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from django.db import connection

from recovery.duties import DUTIES

from .. import quiet
from . import asks
from .asks import Ask
from .homes import Home

ROW = re.compile(rb"<(?:tr|li)[ >]")
POLL = re.compile(r'hx-get="([^"]*[?&](?:amp;)?ids=[^"]*)"')
WARM = 2  # rounds before the clock runs: caches, plans, imports
FEW = 5  # rounds of what is not asked for by somebody who waits


class Answer(NamedTuple):
    took: float
    status: int
    rows: int


Request = Callable[[], Answer]


@dataclass
class Found:
    """One line of the table: milliseconds by the name of the size, and `like` for the page to compare with."""

    group: str
    title: str
    kind: str  # page, poll, known, csv, command, duty
    times: dict[str, list[float]] = field(default_factory=dict)
    queries: dict[str, int] = field(default_factory=dict)
    statuses: dict[str, list[int]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)  # that the answer shows

    @property
    def alike(self) -> bool:
        """Whether it is compared with itself: its answer is as long at both sizes, or it has no like."""
        return "like" not in self.times

    @property
    def basis(self) -> list[float]:
        """The times in the small one that those in the large one are compared with."""
        return self.times["small" if self.alike else "like"]


def measure(homes: list[Home], groups: Iterable[str], rounds: int, *, work: bool) -> tuple[list[Found], int]:
    """The lines of the table, and before how many groups somebody else used the machine."""
    known, loud = {}, 0
    for home in homes:
        home.tend()
        with home:
            known[home.size.name] = asks.facts()
    found = []
    for group in groups:
        loud += not work and quiet.wait() > quiet.BUSY
        for ask in asks.GROUPS[group]():
            found.append(_asked(ask, homes, known, rounds, work))
        calls: dict[str, Callable[[], object]] = {}
        if group == "commands":
            calls = asks.COMMANDS
        elif group == "duties":
            calls = {name: lambda name=name: asks.run_duty(name) for name in DUTIES}
        for title, call in calls.items():
            found.append(_called(group, title, call, homes))
        print(f"  {group}", flush=True)
    return found, loud


def _asked(ask: Ask, homes: list[Home], known: dict[str, dict[str, str]], rounds: int, work: bool) -> Found:
    found = Found(ask.group, ask.title, ask.kind)
    requests: dict[str, tuple[Home, Request]] = {}
    for home in homes:
        home.tend()
        requests[home.size.name] = home, _request(ask, home, known[home.size.name], work)
        _warm(found, home.size.name, *requests[home.size.name])
    small = homes[0]
    if ask.like and found.rows["small"] < found.rows["large"]:
        like = replace(ask, address=ask.like)
        requests["like"] = small, _request(like, small, known["small"], work)
        _warm(found, "like", *requests["like"])
    gc.collect()
    gc.freeze()  # as project/wsgi.py does
    for _ in range(rounds):
        for name, (home, request) in requests.items():
            home.tend()
            with home:
                answer = request()
            found.times.setdefault(name, []).append(answer.took)
            found.statuses.setdefault(name, []).append(answer.status)
    return found


def _warm(found: Found, name: str, home: Home, request: Request) -> None:
    """Ask before the clock runs, and count what is asked of the database."""
    with home:
        with connection.execute_wrapper(counter := Counter()):
            answer = request()
        for _ in range(WARM - 1):
            request()
    found.queries[name], found.rows[name] = counter.number, answer.rows


def _request(ask: Ask, home: Home, facts: dict[str, str], work: bool) -> Request:
    """Ask once: milliseconds until the answer is there, or its first byte; its status, and how many rows it shows."""
    clock = home.worked if work else time.perf_counter
    client, address = home.client(ask.who), ask.address.format(**facts)
    headers = {"HX-Request": "true"} if ask.kind in ("poll", "known") else {}
    with home:
        if ask.polls:
            poll = POLL.search(client.get(address).content.decode())
            address = html.unescape(poll[1]) if poll else address

        def get() -> Answer:
            began = clock()
            answer = client.get(address, headers=headers)
            if answer.streaming:
                next(iter(answer.streaming_content))
            took = (clock() - began) * 1000
            if ask.kind == "known":
                headers["If-None-Match"] = answer.headers.get("ETag", "")
            answer.close()
            rows = 0 if answer.streaming else len(ROW.findall(answer.content))
            return Answer(took, answer.status_code, rows)

        get()
    return get


def _called(group: str, title: str, call: Callable[[], object], homes: list[Home]) -> Found:
    found = Found(group, title, group)
    for turn in range(FEW + 1):
        for home in homes:
            home.tend()
            with home, connection.execute_wrapper(counter := Counter()):
                began = time.perf_counter()
                call()
                took = (time.perf_counter() - began) * 1000
            found.queries[home.size.name] = counter.number
            if turn:
                found.times.setdefault(home.size.name, []).append(took)
    return found


class Counter:
    """What Django asks the database, through its own door."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.number += 1
        return execute(sql, params, many, context)

"""How long it took, and how many queries. The two databases take turns, so that whatever the machine does, it does to both."""

import gc
import html
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from recovery.duties import DUTIES

from .. import quiet
from . import asks
from .asks import Ask
from .homes import Home

POLL = re.compile(r'hx-get="([^"]*[?&](?:amp;)?ids=[^"]*)"')
WARM = 2  # rounds before the clock runs: caches, plans, imports
FEW = 5  # rounds of what is not asked for by somebody who waits


@dataclass
class Found:
    """One line of the table: milliseconds by the name of the size."""

    group: str
    title: str
    kind: str  # page, poll, known, csv, command, duty
    times: dict[str, list[float]] = field(default_factory=dict)
    queries: dict[str, int] = field(default_factory=dict)
    status: dict[str, int] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)  # of the answers


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
    requests = {}
    for home in homes:
        home.tend()
        with home:
            requests[home.size.name] = request = _request(ask, home, known[home.size.name], work)
            with connection.execute_wrapper(counter := Counter()):
                _, found.status[home.size.name], found.lengths[home.size.name] = request()
            found.queries[home.size.name] = counter.number
            for _ in range(WARM - 1):
                request()
    gc.collect()
    gc.freeze()  # as project/wsgi.py does
    for _ in range(rounds):
        for home in homes:
            home.tend()
            with home:
                took = requests[home.size.name]()[0]
            found.times.setdefault(home.size.name, []).append(took)
    return found


def _request(ask: Ask, home: Home, facts: dict[str, str], work: bool) -> Callable[[], tuple[float, int, int]]:
    """Ask once: milliseconds until the answer is there, or its first byte; its status, and its length."""
    clock = home.worked if work else time.perf_counter
    client, address = home.client(ask.who), ask.address.format(**facts)
    if ask.polls:
        page = client.get(address).content.decode()
        poll = POLL.search(page)
        address = html.unescape(poll[1]) if poll else address
    headers = {"HX-Request": "true"} if ask.kind in ("poll", "known") else {}

    def get() -> tuple[float, int, int]:
        began = clock()
        answer = client.get(address, headers=headers)
        if answer.streaming:
            next(iter(answer.streaming_content))
        took = (clock() - began) * 1000
        if ask.kind == "known":
            headers["If-None-Match"] = answer.headers.get("ETag", "")
        answer.close()
        return took, answer.status_code, 0 if answer.streaming else len(answer.content)

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

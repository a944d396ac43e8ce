"""The rows: what is done, and from when to when the clock runs. The same for every engine.

Clocks are `time.time()` of one machine: the client's just before its commit, the step's own line in the ledger,
the bench's when it sees the end in the database (looked for every 5 ms towards the end).
"""

import time
from collections import defaultdict
from collections.abc import Callable
from statistics import quantiles
from typing import NamedTuple

from .peer import Peer
from .processes import Silent, until, weigh

Figures = dict[str, float]
HELD = 200
NEVER = float("inf")


def drain(peer: Peer) -> Figures:
    """Two worker processes up and idle; 2,000 workflows of three steps become visible in one commit; until the last
    is completed. Neither starting processes nor inserting rows is counted."""
    count = 2_000
    peer.fresh()
    peer.workers(2, "drain")
    client = peer.client("drain")
    warm = warm_up(peer, client, 100)

    released = client.ask("together", flow="bench3", count=count)["released"]
    finished = watch_completed(peer, warm + count)
    check(peer, "steps stored", peer.recorded, 3 * (warm + count))
    return {"drain": count / (finished - released)}


def starts(peer: Peer) -> Figures:
    """One client process, no worker: durable starts one after the other, then in one transaction."""
    count = 2_000
    peer.fresh()
    client = peer.client("starts")
    client.ask("one_by_one", flow="bench3", count=100)

    alone = client.ask("one_by_one", flow="bench3", count=count)["seconds"]
    together = client.ask("together", flow="bench3", count=peer.bulk)["seconds"]
    check(peer, "workflows accepted", peer.accepted, 100 + count + peer.bulk)
    return {"starts": count / alone, "bulk": peer.bulk / together}


def steps(peer: Peer) -> Figures:
    """One workflow of 1,000 steps on an idle worker, from the beginning of its first body until it is completed."""
    figures = {}
    for flow, figure in peer.thousands.items():
        peer.fresh()
        peer.workers(1, "steps")
        client = peer.client("steps")
        warm_up(peer, client, 20)

        ((_, finished),) = client.ask("watched", flow=flow, count=1, pause=[0.2, 0.2], within=60)["times"]
        first = min(line.at for line in ledger(peer) if line.what == "begin")
        figures[figure] = finished - first  # seconds per thousand are milliseconds per one
    return figures


def latency(peer: Peer) -> Figures:
    """Two idle workers; 200 times: start a workflow of three steps, look every millisecond until it is completed."""
    peer.fresh()
    peer.workers(2, "latency")
    client = peer.client("latency")
    warm_up(peer, client, 20)

    times = client.ask("watched", flow="bench3", count=200, pause=[0.02, 0.06], within=20)["times"]
    cuts = quantiles([1000 * (finished - begun) for begun, finished in times], n=100)
    return {"p50": cuts[49], "p99": cuts[98]}


def takeover(peer: Peer) -> Figures:
    """One worker holds 200 workflows, each in its fourth step; another is idle and has room. `kill -9` the first:
    until the second has begun all 200 fourth steps again."""
    peer.fresh()
    (holder,) = peer.workers(1, "takeover", "A")
    client = peer.client("takeover")
    hold(peer, client)
    peer.workers(1, "takeover", "B")
    time.sleep(1)

    killed = holder.kill()
    first, last = watch_again(peer, killed, peer.patience)
    return {"takeover": last - killed, "takeover_first": first - killed, "rerun": rerun(peer)}


def restart(peer: Peer) -> Figures:
    """Two workers hold 200 workflows; `kill -9` both, start both again: from the first of them being up until all
    200 fourth steps have begun again."""
    peer.fresh()
    workers = peer.workers(2, "restart")
    client = peer.client("restart")
    hold(peer, client)

    killed = [worker.kill() for worker in workers][-1]
    workers = peer.workers(2, "restart")
    _, last = watch_again(peer, killed, peer.patience)
    return {
        "restart": max(0.0, last - min(worker.up for worker in workers)),
        "restart_from_spawn": last - min(worker.started for worker in workers),
        "rerun": rerun(peer),
    }


def reruns(peer: Peer) -> Figures:
    """200 workflows of four 20 ms steps; in the middle of it `kill -9` all workers, start them again, let all
    complete. A step is finished when the next one of its workflow has begun; how many of 800 began again after that?"""
    peer.fresh()
    workers = peer.workers(2, "reruns")
    client = peer.client("reruns")
    client.ask("together", flow="chain", count=HELD)
    until(lambda: ended(peer) >= 2 * HELD, 60, "half of the steps", every=0.001)

    for worker in workers:
        worker.kill()
    peer.workers(2, "reruns")
    watch_completed(peer, HELD, patience=60)
    return {"rerun": rerun(peer), "bodies_twice": ended(peer) - 4 * HELD}


def memory(peer: Peer) -> Figures:
    """The largest process of a worker with 64 workflows in flight, each inside a step; and all its processes."""
    peer.fresh()
    (worker,) = peer.workers(1, "memory")
    client = peer.client("memory")
    client.ask("together", flow="hold", count=64)
    until(lambda: begun_last(peer) >= 64, 60, "64 workflows in flight")
    time.sleep(1)

    sizes = [weigh(pid) for pid in worker.family()]
    largest = max(sizes, key=lambda size: size["rss"])
    return {"rss": largest["rss"], "pss": largest["pss"], "family_pss": sum(size["pss"] for size in sizes)}


def sweep(peer: Peer) -> Figures:
    """1,000,000 paused workflows, 10,000 held by ten live workers, nobody dead: one look-out of a worker, in ms."""
    if not peer.sweeps:
        return {}
    peer.fresh()
    peer.fill(paused=1_000_000, held=10_000)
    times = peer.client("sweep").ask("sweep", count=200, patience=60)["times"]
    cuts = quantiles([1000 * seconds for seconds in times], n=100)
    return {"sweep": cuts[49], "sweep_p99": cuts[98]}


ROWS: dict[str, tuple[Callable[[Peer], Figures], ...]] = {
    "drain": (drain,),
    "starts": (starts,),
    "steps": (steps,),
    "latency": (latency,),
    "memory": (memory,),
    "crash": (takeover, restart, reruns),
    "sweep": (sweep,),
}


class Line(NamedTuple):
    at: float
    pid: int
    what: str
    workflow: str
    step: str


def ledger(peer: Peer) -> list[Line]:
    lines = (text.split() for text in peer.ledger.read_text().splitlines())
    return [Line(float(at), int(pid), what, workflow, step) for at, pid, what, workflow, step in lines]


def rerun(peer: Peer) -> int:
    """Steps that began again although a later step of the same workflow had already begun."""
    furthest: dict[str, str] = defaultdict(str)
    again = 0
    for line in sorted(line for line in ledger(peer) if line.what == "begin"):
        again += line.step < furthest[line.workflow]
        furthest[line.workflow] = max(furthest[line.workflow], line.step)
    return again


def ended(peer: Peer) -> int:
    return sum(line.what == "end" for line in ledger(peer))


def begun_last(peer: Peer, since: float = 0.0) -> int:
    """Workflows that have begun their long last step since then."""
    return len(
        {line.workflow for line in ledger(peer) if line.step == "d" and line.what == "begin" and line.at > since}
    )


def hold(peer: Peer, client) -> None:
    client.ask("together", flow="hold", count=HELD)
    until(lambda: begun_last(peer) >= HELD, 60, f"{HELD} workflows in their long step")
    time.sleep(1)


def watch_again(peer: Peer, since: float, patience: float) -> tuple[float, float]:
    """When the first and the last of the held workflows began their long step again; never, if patience ends first."""
    try:
        until(lambda: begun_last(peer, since) >= HELD, patience, "all running again")
    except Silent:
        return NEVER, NEVER
    firsts: dict[str, float] = {}
    for line in ledger(peer):
        if line.step == "d" and line.what == "begin" and line.at > since:
            firsts.setdefault(line.workflow, line.at)
    return min(firsts.values()), max(firsts.values())


def check(peer: Peer, what: str, query: str, wanted: int) -> None:
    """A figure counts only if the database holds the work it claims to be about."""
    if (found := peer.count(query)) != wanted:
        raise Silent(f"{peer.label}: {found:,} {what}, not {wanted:,}: this was not the same work")


def warm_up(peer: Peer, client, count: int) -> int:
    """Imports, plans, pools: paid before the clock runs."""
    client.ask("together", flow="bench3", count=count)
    watch_completed(peer, count)
    time.sleep(0.5)
    return count


def watch_completed(peer: Peer, count: int, patience: float = 180) -> float:
    """When that many are completed; the closer to the end, the more often it looks."""
    deadline = time.monotonic() + patience
    begun = time.monotonic()
    while (done := peer.count(peer.completed)) < count:
        if time.monotonic() > deadline:
            raise Silent(f"{peer.label}: {done} of {count} completed after {patience:.0f} s")
        remaining = (count - done) * (time.monotonic() - begun) / max(done, 1)
        time.sleep(min(0.2, max(0.005, remaining / 10)))
    return time.time()

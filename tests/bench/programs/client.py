"""The conversation every client program holds with the bench: one JSON line in, one JSON line out.

Standard library only: this file is read by three different virtual environments.
"""

import json
import random
import sys
import time
from collections.abc import Callable


def serve(
    start: Callable[[str, int], str],
    start_together: Callable[[str, int], float],
    finished: Callable[[str], bool],
    **more: Callable[..., dict],
) -> None:
    """Answer until standard input closes. Each program brings its own three verbs, and perhaps more.

    start(flow, n) -> id: accept one workflow, durably.
    start_together(flow, count) -> the moment just before the one commit that makes all of them visible.
    finished(id): has this workflow completed?
    """

    def one_by_one(flow: str, count: int) -> dict:
        begun = time.time()
        for n in range(count):
            start(flow, n)
        return {"seconds": time.time() - begun}

    def together(flow: str, count: int) -> dict:
        begun = time.time()
        released = start_together(flow, count)
        return {"seconds": time.time() - begun, "released": released}

    def watched(flow: str, count: int, pause: list[float], within: float) -> dict:
        times = []
        for n in range(count):
            time.sleep(random.uniform(*pause))
            begun = time.time()
            wanted = start(flow, n)
            while not finished(wanted):
                if time.time() - begun > within:
                    raise TimeoutError(f"{flow} {wanted} did not finish within {within} s")
                time.sleep(0.001)
            times.append([begun, time.time()])
        return {"times": times}

    verbs = {"one_by_one": one_by_one, "together": together, "watched": watched, **more}
    print(json.dumps({"ready": time.time()}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(verbs[asked.pop("verb")](**asked)), flush=True)

"""A real HTTP receiver on loopback that remembers what it was sent and answers as it is told."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver:
    def __init__(self, url: str) -> None:
        self.url = url
        self.posts: list[dict[str, Any]] = []
        self.answers: list[int] = []  # the next ones; 200 when there are none
        self.hold: str | None = None  # who is kept waiting for an answer
        self.holding = threading.Event()

    def messages(self) -> list[str]:
        """The first words of each, in the order in which they came: who was greeted."""
        return [post["message"].removeprefix("Hey, ").split()[0] for post in self.posts]

    def keys(self) -> set[str]:
        return {post["idempotencyKey"] for post in self.posts}


@contextmanager
def receiving() -> Iterator[Receiver]:
    class Post(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            post = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.headers["Idempotency-Key"] == post["idempotencyKey"]
            receiver.posts.append(post)
            if receiver.hold and receiver.hold in post["message"]:
                receiver.holding.set()
                done.wait(60)
            self.send_response(receiver.answers.pop(0) if receiver.answers else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

        def handle(self) -> None:
            try:
                super().handle()
            except ConnectionError:
                pass  # whoever asked was killed

    done = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Post)
    server.daemon_threads = True
    receiver = Receiver(f"http://127.0.0.1:{server.server_port}/birthdays")
    thread = threading.Thread(
        target=server.serve_forever, args=(0.01,), daemon=True
    )  # how soon it sees that it is over
    thread.start()
    try:
        yield receiver
    finally:
        done.set()
        server.shutdown()
        server.server_close()

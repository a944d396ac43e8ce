"""The port. We listen, the web process inherits: it can be started again without losing the address."""

import errno
import select
import socket

TRIES = 100
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  a listener there can be reached here


def listen(host: str, port: int) -> socket.socket:
    """On this port, or on the next free one."""
    for candidate in range(port, port + TRIES):
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, candidate))
            listener.listen(128)
        except OSError as refusal:
            listener.close()
            if refusal.errno != errno.EADDRINUSE:
                raise
            continue
        return listener
    raise OSError(errno.EADDRINUSE, f"Ports {port} to {port + TRIES - 1} are all taken; choose one with --port.")


def ask(listener: socket.socket) -> socket.socket:
    """Put a question to whoever will serve this listener, without waiting for the answer."""
    host, port = listener.getsockname()[:2]
    question = socket.create_connection((EVERYWHERE.get(host, host), port))
    question.sendall(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
    return question


def answered(question: socket.socket) -> bool:
    return bool(select.select([question], [], [], 0)[0])


def url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    if host in EVERYWHERE:
        host = "localhost"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"

"""For the worker that imports this: it is frozen inside the transaction of its first take-over."""

import os
import signal
from typing import Any

from workflows import takeover


def freeze(*_: Any) -> None:
    takeover.witnesses.remove(freeze)
    os.kill(os.getpid(), signal.SIGSTOP)


takeover.witnesses.append(freeze)

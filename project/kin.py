"""Processes that do not outlive the one that started them."""

import shutil
import subprocess
from functools import cache


@cache
def dying_with_its_parent(signal: str) -> list[str]:
    """What to put in front of a command so that Linux sends it this signal once the thread that started it is
    gone, even by `kill -9`. Elsewhere nothing: then only an orderly end is passed on."""
    if shutil.which("setpriv") is None:
        return []
    command = ["setpriv", f"--pdeathsig={signal}", "--"]
    return command if subprocess.run([*command, "true"], capture_output=True).returncode == 0 else []

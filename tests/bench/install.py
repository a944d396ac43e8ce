"""The peers, from PyPI by name, each in a virtual environment that only the bench uses."""

import os
import subprocess
import sys
from pathlib import Path


def install(name: str, packages: tuple[str, ...], data: Path) -> Path:
    """The interpreter of that environment; made on the first run, made again if other versions are wanted."""
    home = data / "environments" / name
    python, stamp = home / "bin" / "python", home / "installed"
    wanted = f"{sys.version}\n" + "\n".join(packages)
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    print(f"Installing {' '.join(packages)} …", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    done = subprocess.run(pip, env=os.environ | {"PYTHONPATH": ""}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name} could not be installed:\n{done.stderr}")
    stamp.write_text(wanted)
    return python


def version(python: Path, requirement: str) -> str:
    package = requirement.split("=")[0]
    ask = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([str(python), "-c", ask], check=True, capture_output=True, text=True).stdout.strip()

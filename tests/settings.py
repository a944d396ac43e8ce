"""The project's settings on a database of this run's own: a directory that is thrown away with its last user."""

import os
import secrets
import tempfile
from pathlib import Path

os.environ.pop("DATABASE_URL", None)
os.environ["REKINDLE_DATA"] = str(Path(tempfile.gettempdir()) / f"rekindle-test-{secrets.token_hex(8)}")
os.environ["REKINDLE_SECRET_KEY"] = "only-for-tests-" * 4

from project.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STATIC_ROOT = None  # nothing is collected: WhiteNoise finds the files where they lie
REKINDLE = {"MODULES": ("tests.workflows.flows",), "RESTART_GRACE": 0}  # this server is always young

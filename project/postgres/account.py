"""As whom: PostgreSQL refuses to run as root, and `initdb` wants an account that has a name.

Root steps into a user namespace in which it is called by another number: the files stay root's own, no
directory has to be opened to anybody. Where namespaces are forbidden (many containers) it becomes an
unprivileged account that keeps one capability, to pass through directories it does not own.
"""

import os
import pwd
import shutil
import subprocess

from project.postgres.trouble import NoPostgres


def prefix() -> list[str]:
    """What to put in front of a PostgreSQL command so that it runs as somebody it accepts."""
    if os.geteuid() != 0 and _has_a_name(os.geteuid()):
        return []
    other = next(entry for entry in pwd.getpwall() if entry.pw_uid != 0)
    namespace = ["unshare", "--user", f"--map-user={other.pw_uid}", f"--map-group={other.pw_gid}", "--"]
    lowered = [
        "setpriv",
        f"--reuid={other.pw_uid}",
        f"--regid={other.pw_gid}",
        "--clear-groups",
        "--inh-caps=+dac_override",
        "--ambient-caps=+dac_override",
        "--",
    ]
    for command in (namespace, lowered):
        if _works(command):
            return command
    raise NoPostgres(
        "PostgreSQL does not run as root, and neither a user namespace nor another account can be had here: "
        "start Rekindle as an ordinary user, or set DATABASE_URL=postgresql://user:password@host/name."
    )


def _has_a_name(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _works(command: list[str]) -> bool:
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run([*command, "true"], capture_output=True).returncode == 0

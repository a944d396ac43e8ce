"""Behind a transaction pooler a session lock means nothing: it is noticed, and silence alone decides. With a real PgBouncer."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from django.db import connection

from project.postgres import account
from workflows import start
from workflows.models import Worker, Workflow

from .conftest import ROOT, until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def pooler(workers, tmp_path):
    """The address of a PgBouncer in front of the test's database."""
    binary = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    assert Path(binary).exists(), "install pgbouncer, as .ci/run does"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    at = connection.settings_dict
    target = f"host={at['HOST']} port={at['PORT']} dbname={at['NAME']} user={at['USER']}"
    config = tmp_path / "pgbouncer.ini"
    config.write_text(
        f"[databases]\npooled = {target} pool_size=20\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
        f"unix_socket_dir =\nauth_type = any\npool_mode = transaction\nlogfile = /dev/null\n"
        "ignore_startup_parameters = extra_float_digits\nlog_connections = 0\nlog_disconnections = 0\n"
    )
    process = subprocess.Popen([*account.prefix(), binary, str(config)])  # like PostgreSQL, it refuses to be root
    until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, "the pooler listens")
    yield f"postgresql://{at['USER']}@127.0.0.1:{port}/pooled"
    process.send_signal(signal.SIGINT)
    process.wait(10)


def test_a_worker_behind_a_pooler_is_found_by_its_silence(workers, ledger, pooler):
    """Design 5.2: detected, not guessed; its settings stay its own."""
    workers.start(DATABASE_URL=pooler)
    first = Worker.objects.get()
    start("slow", {"tag": "w", "seconds": 1.0, "steps": 2})
    until(lambda: "w:0:begun" in ledger(), "the first step has begun")

    os.kill(first.pid, signal.SIGKILL)

    until(lambda: not Workflow.objects.filter(finished_at=None).exists(), "its replacement has finished it")
    first.refresh_from_db()
    assert (first.pooled, first.ended_why) == (True, "silent")
    assert Workflow.objects.get().status == "completed"


def test_the_doctor_names_the_pooler_and_nothing_of_ours_leaks_through_it(workers, pooler):
    environment = workers.environment | {"DATABASE_URL": pooler}
    command = [sys.executable, "manage.py", "doctor"]
    found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)

    assert "transaction pooler" in found.stdout
    with psycopg.connect(pooler, autocommit=True) as other:
        assert other.execute("SHOW enable_seqscan").fetchone() == ("on",)


ASKED_BY_OTHERS = """
import os, django; django.setup()
import psycopg
from recovery import duties
from recovery.tally import Tally

def act(ran_by, deadline):
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as other:
        print(other.execute("SHOW lock_timeout").fetchone()[0])
    return Tally()

duties.DUTIES["sweep"] = duties.Declared(act)
assert duties.run("sweep", "operator").error == ""
"""


def test_the_limits_of_a_duty_are_not_those_of_others_behind_a_pooler(workers, pooler):
    """Design 9: statement_timeout on our own only, never on the host's."""
    environment = workers.environment | {"DATABASE_URL": pooler}

    seen = subprocess.run(
        [sys.executable, "-c", ASKED_BY_OTHERS], cwd=ROOT, env=environment, capture_output=True, text=True
    )

    assert (seen.stdout.split(), seen.returncode) == (["0"], 0), seen.stderr

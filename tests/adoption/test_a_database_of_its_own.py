"""The engine on another PostgreSQL than the host's users: the lines that docs/install.md gives for it are enough."""

import re
import shutil
from urllib.parse import urlsplit

import psycopg
import pytest

from .conftest import EMAIL, PASSWORD, ROOT, Bakery, until

PAGES = """
from django.test import Client
from people.models import Baker
client = Client(SERVER_NAME="127.0.0.1"); client.force_login(Baker.objects.get())
pages = ["", "rail", "workflows/", "workflows.csv", "recovery/", "workers/", "audit/", "names/bread/"]
FOUND = {page: client.get("/ops/rekindle/" + page).status_code for page in pages}
"""


def lines():
    """What the page adds for another database, beyond the entry in DATABASES."""
    text = (ROOT / "docs/install.md").read_text()
    return re.search(r"^## On another database.*?^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]


@pytest.fixture
def two_houses(adopted):
    """A second bakery in the same environment, its engine elsewhere."""
    home = adopted.home / "two"
    home.mkdir()
    with psycopg.connect(adopted.address, autocommit=True) as connection:
        connection.execute("CREATE DATABASE bakery_people")
        connection.execute("CREATE DATABASE bakery_engine")
    shutil.copytree(adopted.home / "project", home / "project")
    (home / "env").symlink_to(adopted.home / "env")
    with (home / "project/bakery/settings.py").open("a") as settings:
        settings.write('DATABASES["engine"] = DATABASES["default"] | {"NAME": "bakery_engine"}\n' + lines())
    found = Bakery(home, urlsplit(adopted.address)._replace(path="/bakery_people").geturl())
    found.environment |= {"BAKERY_STATIC": adopted.environment["BAKERY_STATIC"]}
    yield found
    found.end()


def test_the_engine_lives_apart_from_the_hosts_users(two_houses):
    for database in ("engine", "default"):  # the unusual order: its tables are there before the users'
        two_houses.manage("migrate", "--verbosity", "0", "--database", database)
    two_houses.ask(
        f"from people.models import Baker; Baker.objects.create_superuser({EMAIL!r}, {PASSWORD!r}); print(1)"
    )
    (two_houses.home / "door").touch()

    assert "no issues" in two_houses.manage("check")
    two_houses.manage("rekindle", "start", "bread", "--input", '{"loaf": "rye"}')
    two_houses.start("manage.py", "rekindle", "work", "--processes", "1")
    until(lambda: two_houses.ledger()[-1:] == ["sold:rye"], "it is baked")
    answers = two_houses.ask(f"exec({PAGES!r}); print(json.dumps(FOUND))")

    assert set(answers.values()) == {200}, answers
    assert two_houses.query("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'rekindle%%'") == [(0,)]
    groups = [name for (name,) in two_houses.query("SELECT name FROM auth_group")]
    assert sorted(groups) == ["Rekindle admin", "Rekindle operator", "Rekindle viewer"]
    schedules = "SELECT count(*) FROM django_q_schedule WHERE name LIKE 'rekindle:%%'"
    assert two_houses.query(schedules)[0][0] > 4

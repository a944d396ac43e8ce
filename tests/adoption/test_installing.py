"""The wheel and five lines make a foreign project run workflows; the page that says so is what this test reads."""

from .conftest import ROOT, five_lines, own_schedules


def test_the_page_asks_for_five_lines():
    lines = five_lines()

    assert set(lines) == {"shell", "settings.py", "urls.py"}
    assert sum(map(len, lines.values())) == 5


def test_nothing_of_the_repository_can_be_imported_there_but_the_wheel(adopted):
    where = "import importlib.util as u; print(json.dumps([getattr(u.find_spec(n), 'origin', '') for n in %r]))"

    ours = adopted.ask(where % (["workflows", "recovery"],))
    others = adopted.ask(where % (["project", "tests", "tests.settings"][:2],))

    assert all(path.startswith(str(adopted.home / "env")) for path in ours)
    assert others == ["", ""]
    assert str(ROOT) not in "".join(adopted.ask("import sys; print(json.dumps(sys.path))")[:-1])


def test_the_checks_have_nothing_to_say_not_even_before_a_deploy(adopted):
    assert "no issues" in adopted.manage("check")
    assert "no issues" in adopted.manage("check", "--deploy", BAKERY_HTTPS="1")


def test_no_migration_of_the_host_or_of_ours_is_missing(adopted, before):
    assert before["models"] == adopted.manage("makemigrations", "--check", "--dry-run") == "No changes detected\n"


def test_a_missing_line_is_named(adopted):
    settings = adopted.home / "project/bakery/settings.py"
    whole = settings.read_text()
    settings.write_text("\n".join(line for line in whole.splitlines() if not line.startswith("MIDDLEWARE += ")))

    try:
        said = adopted.manage("check")
    finally:
        settings.write_text(whole)

    assert "HtmxMiddleware" in said


def test_the_hosts_schedules_are_as_they_were(adopted, before):
    names = [name for (name,) in adopted.query("SELECT name FROM django_q_schedule")]

    assert own_schedules(adopted) == before["schedules"]
    assert len(before["schedules"]) == 4
    assert "rekindle:sweep" in names

"""In the bakery: a worker is killed and the workflow comes back, every page opens, and the host's own life goes on."""

import re
from html import unescape
from urllib.parse import unquote

import pytest

from .conftest import EMAIL, SOMEBODY, kill, own_schedules, until

OPS = "/ops/rekindle"
ADDRESSES = """
from django.urls import reverse
from django.urls.converters import get_converters
import recovery.urls
kinds = {type(one): kind for kind, one in get_converters().items()}
for pattern in recovery.urls.urlpatterns:
    kwargs = {key: GIVEN.get(key) or GIVEN[kinds[type(one)]] for key, one in pattern.pattern.converters.items()}
    for key in pattern.pattern.regex.groupindex.keys() - kwargs.keys():
        kwargs[key] = {"name": "throughput", "form": "json"}[key]
    FOUND.append([pattern.name, reverse("rekindle:" + pattern.name, kwargs=kwargs), bool(kwargs)])
"""


@pytest.fixture(scope="module")
def rescued(adopted):
    """The id of a workflow whose worker was killed in the oven and that another one has finished; a scheduler ran too."""
    adopted.start("manage.py", "qcluster")
    ran = "SELECT count(*) FROM rekindle_recovery_duty WHERE ran_by = 'scheduled task' AND ended_at IS NOT NULL"
    until(lambda: adopted.query(ran)[0][0], "the host's cluster has run a duty")
    first = adopted.work()
    started = adopted.manage("rekindle", "start", "bread", "--input", '{"loaf": "rye"}', "--key", "rye")
    until(lambda: "oven:rye" in adopted.ledger(), "the first worker holds it")
    adopted.work()
    kill(first)
    until(lambda: adopted.ledger().count("oven:rye") == 2, "the second worker has taken it over")
    (adopted.home / "door").touch()
    until(lambda: adopted.query("SELECT status FROM rekindle_workflow") == [("completed",)], "it is baked")
    settled = "SELECT outcome FROM rekindle_recovery_recovery WHERE outcome <> 'pending'"
    until(lambda: adopted.query(settled), "the rescue has been judged")
    return re.search(r"[0-9a-f-]{36}", started)[0]


def addresses(adopted, pk):
    """Of every URL of the namespace, made in the host by its own resolver: name, address, whether it names something."""
    given = {"uuid": pk, "int": 1, "slug": "recover", "path": "bread", "str": "bread", "what": "input"}
    code = f"GIVEN, FOUND = {given!r}, []\n{ADDRESSES}"
    return adopted.ask(f"exec({code!r}); print(json.dumps(FOUND))")


def test_what_a_killed_worker_held_comes_back_and_no_finished_step_runs_again(adopted, rescued):
    """S0-001, S1-001, S1-048."""
    assert adopted.ledger() == ["dough:rye", "oven:rye", "oven:rye", "sold:rye"]
    ((reason, outcome),) = adopted.query("SELECT reason, outcome FROM rekindle_recovery_recovery")
    assert (reason, outcome) == ("infrastructure_restart", "recovered")


def test_every_page_opens_under_the_hosts_prefix_and_login(adopted, rescued, visit):
    admin = visit(EMAIL)

    for name, url, names_something in addresses(adopted, rescued):
        assert url.startswith(OPS), name
        url += f"?ids={rescued}"
        stranger, answer = visit().get(url), admin.get(url)
        if name == "healthz":
            assert stranger.status == 200
        elif answer.status == 405:
            assert stranger.status in (302, 405)
        else:
            said = unquote(stranger.headers["Location"] or "")
            assert (stranger.status, said) == (302, f"/people/enter/?next={url}")
            assert answer.status == 200 or (names_something and "· Rekindle" in answer.text), f"{name}: {answer.status}"


def test_every_link_on_our_pages_leads_to_a_page_of_ours_or_the_hosts_admin(adopted, rescued, visit):
    """Nothing is addressed as if the dashboard were at the root."""
    admin, seen, waiting = visit(EMAIL), set(), [f"{OPS}/"]
    while waiting:
        url = waiting.pop()
        seen.add(url)
        answer = admin.get(url)
        assert answer.status == 200, url
        if not answer.headers["Content-Type"].startswith("text/html"):
            continue
        for kind, link in re.findall(
            r'\b(href|formaction|action|src|data-live|hx-get|hx-post)="(/[^"#]*)', answer.text
        ):
            assert link.startswith((f"{OPS}/", "/assets/rekindle/", "/back-office/")), f"{link} on {url}"
            if kind in ("href", "data-live") and link.startswith(OPS) and link.count("/") < 7:
                waiting += {unescape(link)} - seen - set(waiting)

    assert len(seen) > 8


def test_static_files_have_hashed_names_and_are_there(adopted, rescued, visit):
    page = visit(EMAIL).get(f"{OPS}/").text

    files = re.findall(r'(?:src|href)="(/assets/rekindle/[^"]+)"', page)

    assert len(files) > 5
    for file in files:
        assert re.search(r"\.[0-9a-f]{12}\.\w+$", file), file
        assert visit().get(file).status == 200


def test_each_side_keeps_its_own_content_security_policy(adopted, rescued, visit):
    admin = visit(EMAIL)

    assert "bread.example" in admin.get("/").headers["Content-Security-Policy"]
    for url in (f"{OPS}/", f"{OPS}/workflows/", f"{OPS}/names/nothing/"):
        policies = admin.get(url).headers.get_all("Content-Security-Policy")
        assert len(policies) == 1
        assert "bread.example" not in policies[0]
        assert "frame-ancestors 'none'" in policies[0]


def test_the_hosts_pages_look_as_they_did(adopted, visit):
    home = visit().get("/")

    assert home.status == 200
    assert 'class="bakery"' in home.text
    assert "Fresh bread" in home.text
    assert "rekindle" not in home.text.lower()


def test_only_our_views_have_our_time_limit(adopted, rescued, visit):
    """The one connection of the server is the host's again as soon as our page is drawn."""
    admin = visit(EMAIL)
    assert admin.get("/patience/").text == "77s"

    for url in (f"{OPS}/", f"{OPS}/workflows.csv", f"{OPS}/workflows/{rescued}/"):
        assert admin.get(url).status == 200
        assert admin.get("/patience/").text == "77s"


def test_an_admin_tunes_and_acts_under_the_hosts_transactions(adopted, rescued, visit):
    """ATOMIC_REQUESTS: a refusal is written down although nothing else is, and the longest e-mail is an actor."""
    adopted.ask(
        f"from people.models import Baker; Baker.objects.create_superuser({SOMEBODY!r}, 'sourdough-and-salt'); print(1)"
    )
    admin = visit(SOMEBODY)
    fence = adopted.query("SELECT fence FROM rekindle_workflow")[0][0]

    tuned = admin.post(f"{OPS}/names/bread/", on_run_limit="flag", concurrency="3", reason="one oven")
    refused = admin.post(f"{OPS}/workflows/{rescued}/ask/recover", reason="again", **{f"seen-{rescued}": str(fence)})

    assert (tuned.status, refused.status) == (302, 409)
    noted = adopted.query("SELECT act, left(actor, 190), refused <> '' FROM rekindle_recovery_auditentry ORDER BY id")
    assert noted == [("create", SOMEBODY[:190], False), ("revive", SOMEBODY[:190], True)]
    assert adopted.query("SELECT concurrency, changed_by FROM rekindle_policy") == [(3, SOMEBODY[:200])]


def test_the_hosts_schedules_are_untouched_after_all_this(adopted, rescued, before):
    """The host's cluster ran our duties, and theirs are as they were."""
    assert own_schedules(adopted) == before["schedules"]

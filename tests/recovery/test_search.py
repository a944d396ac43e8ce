"""The search language: what is typed, what it finds, and what is said of what it does not understand."""

import io
import json

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recovery.queries.workflows import wanted
from recovery.search import LONGEST, parse, search, suggestions
from recovery.search.known import Known
from recovery.search.language import KEYS
from recovery.search.troubles import first_id
from tests.factories import StepFactory, WorkerFactory, WorkflowFactory, ago
from workflows.models import Workflow

QUIET = [HealthCheck.function_scoped_fixture]


@pytest.fixture
def known():
    """The fields a definition named, without one."""
    known = Known()
    known.fields = ["customer"]
    return known


def found(text, known=None):
    return set(Workflow.objects.filter(search(text, known).wanted).values_list("key", flat=True))


# -- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("ORD-1", [("", "ORD-1", False)]),
        ("status:failed  name:order*", [("status", "failed", False), ("name", "order*", False)]),
        ("Status:failed", [("status", "failed", False)]),
        ("-name:noise", [("name", "noise", True)]),
        ("-noise", [("", "noise", True)]),
        ('key:"two words" x', [("key", "two words", False), ("", "x", False)]),
        ('key:"never closed', [("key", "never closed", False)]),
        ("worker:host-2:812", [("worker", "host-2:812", False)]),
        ("input.customer:42", [("input.customer", "42", False)]),
        ('"order:17"', [("", "order:17", False)]),
    ],
)
def test_text_becomes_terms(text, terms):
    read, hints = parse(text)

    assert [(term.key, term.value, term.negated) for term in read] == terms
    assert not hints


def test_a_term_knows_its_place():
    assert [term.start for term in parse("a  status:failed")[0]] == [0, 3]


@pytest.mark.parametrize(
    ("text", "start", "said"),
    [
        ("ok color:red", 3, "There is no color:"),
        ("status:", 0, "status: needs a value"),
        ("status:broken", 0, "There is no status 'broken'"),
        ("is:nice", 0, "There is no is:nice"),
        ("age:10m", 0, "is no age"),
        ("age:>10y", 0, "is no age"),
        ("age:>999999999w", 0, "is older than the calendar"),
        ("attempts:many", 0, "is no number of attempts"),
        ("attempts:>1h", 0, "is no number of attempts"),
        ("version:2", 0, "needs a name beside it"),
        ("name:order version:two", 11, "is no version"),
        ("id:xyz", 0, "is no id"),
        ("worker:host:pid", 0, "is no worker"),
        ("input.card:4111", 0, "The field card is not searchable (there are customer)"),
        ('""', 0, "nothing between the quotes"),
        ("x " * LONGEST, 40, "Only the first 20 terms"),
        ("x" * (LONGEST + 1), LONGEST, f"Only the first {LONGEST} characters"),
    ],
)
def test_what_is_not_understood_is_said(known, text, start, said):
    hints = search(text, known).hints

    assert said in " ".join(hint.sentence for hint in hints)
    assert start in [hint.start for hint in hints]


# -- finding ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def world(db):
    worker = WorkerFactory(host="host-2", pid=812)
    WorkflowFactory(name="order", key="fresh", search=["customer=42"])
    WorkflowFactory(name="order_big", key="run", running=True, worker=worker, version=2)
    WorkflowFactory(name="noise", key="orphan", orphan=True, recovery_attempts=2)
    failed = WorkflowFactory(name="order", key="failed", failed=True)
    StepFactory(workflow=failed, name="charge_card", status="failed", error={"type": "TimeoutError", "message": "x"})
    pended = WorkflowFactory(name="parcel", key="pended", pended=True, basket="fraud-review")
    pended.steps.update(name="look")
    WorkflowFactory(name="parcel", key="held", pended=True, basket="crash_review").steps.update(
        error={"type": "Crashed"}
    )
    WorkflowFactory(name="parcel", key="blocked", blocked=True)
    WorkflowFactory(name="noise", key="aside", failed=True, error={"type": "Noise", "discarded": {"by": "ada"}})
    WorkflowFactory(name="parcel", key="late", wake_at=ago(hours=1))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("status:failed", {"failed", "aside"}),
        ("status:RUNNING", {"run", "orphan"}),
        ("name:order", {"fresh", "failed"}),
        ("name:order*", {"fresh", "failed", "run"}),
        ("name:nothing*", set()),
        ("name:order* -name:order_*", {"fresh", "failed"}),
        ("-name:parcel -name:order*", {"orphan", "aside"}),
        ("key:run", {"run"}),
        ("run", {"run"}),
        ("order", {"fresh", "failed"}),
        ("order fresh", {"fresh"}),
        ("step:charge_card", {"failed"}),
        ("step:look", {"pended"}),
        ("error:TimeoutError", {"failed"}),
        ("error:ValueError", {"failed"}),
        ("error:KeyError", set()),
        ("worker:host-2:812", {"run"}),
        ("worker:host-2", {"run"}),
        ("worker:host-2:813", set()),
        ("attempts:>1", {"orphan"}),
        ("attempts:<=2 status:running", {"run", "orphan"}),
        ("is:orphan", {"orphan"}),
        ("is:late", {"late"}),
        ("is:held", {"held"}),
        ("is:uncertain", {"held"}),
        ("is:blocked", {"blocked"}),
        ("is:dead-letter", {"failed"}),
        ("basket:fraud-review", {"pended"}),
        ("name:order_big version:2", {"run"}),
        ("name:order_big version:1", set()),
        ("input.customer:42", {"fresh"}),
        ("input.customer:4", set()),
        ("age:>10m", set()),
        ("age:<10m status:failed", {"failed", "aside"}),
        ("status:nonsense", set()),
        ("-status:nonsense", set()),
        ("''; DROP TABLE rekindle_workflow; --", set()),
    ],
)
def test_a_search_finds_what_it_names(world, known, text, keys):
    assert found(text, known) == keys


def test_an_id_is_found_whole_and_by_its_beginning(world):
    one = Workflow.objects.get(key="run")

    assert found(str(one.pk)) == {"run"}
    assert found(f"id:{str(one.pk)[:-2]}") == {"run"}
    assert "run" in found(str(one.pk)[:6])


def test_a_key_with_a_colon_is_found_and_the_doubt_is_said(db):
    WorkflowFactory(key="birthday:7")

    assert found("birthday:7") == found('"birthday:7"') == {"birthday:7"}
    assert search("birthday:7").hints
    assert not search('"birthday:7"').hints


def test_an_old_one_is_found_by_its_age(db):
    WorkflowFactory(key="old", id=first_id(1_000), created_at=ago(hours=1))

    assert found("age:>10m") == {"old"}
    assert found("age:<10m") == set()


def test_taking_a_term_away_leaves_the_rest():
    assert [rest for _, rest in search("status:failed -x").chips] == ["-x", "status:failed"]


def test_every_key_and_every_name_is_suggested(world, known):
    offered = [text for text, _ in suggestions(known)]

    assert {f"{key}:" for key in KEYS} - set(offered) == {"status:", "is:"}
    assert {"status:failed", "is:orphan", "name:order_big", "input.customer:"} <= set(offered)


WORDS = st.sampled_from(
    [*(f"{key}:" for key in KEYS), "input.customer:", "-", '"', ">", "*", " ", "1", "h", "\0", "%s", "%", "?"]
)


@settings(max_examples=150, derandomize=True, deadline=None, database=None, suppress_health_check=QUIET)
@given(text=st.one_of(st.text(), st.lists(st.one_of(WORDS, st.text(max_size=5)), max_size=30).map("".join)))
def test_no_text_is_an_error(world, known, text):
    """Whatever is typed, Postgres is asked something it can answer."""
    read = search(text, known)

    list(Workflow.objects.filter(read.wanted)[:1])

    assert read.terms or read.hints or not text.replace("\0", "").encode("utf-8", "ignore").strip()


# Copies of the one there is, with a name and a key of their own.
CROWD = """
CREATE TEMPORARY TABLE others ON COMMIT DROP AS
SELECT n, ('01990000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid AS id FROM generate_series(1, 3999) AS n;

INSERT INTO rekindle_workflow SELECT copy.* FROM rekindle_workflow w CROSS JOIN others CROSS JOIN LATERAL
    jsonb_populate_record(w, jsonb_build_object('id', others.id, 'name', 'n' || n % 40, 'key', 'K-' || n)) AS copy;

INSERT INTO rekindle_step SELECT copy.* FROM rekindle_step s CROSS JOIN others CROSS JOIN LATERAL
    jsonb_populate_record(s, jsonb_build_object('id', -n, 'workflow_id', others.id)) AS copy;
"""


@pytest.fixture
def crowd(db):
    """Enough others, and known to the planner, that it chooses as it would among a million."""
    one = WorkflowFactory(name="n0", key="K-0", completed=True)
    StepFactory(workflow=one, name="pack")
    with connection.cursor() as cursor:
        cursor.execute(CROWD)
        cursor.execute(
            "ANALYZE rekindle_workflow, rekindle_step; SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off"
        )


def test_a_key_is_looked_up_in_its_index(crowd):
    assert "rekindle_key" in Workflow.objects.filter(search("key:ORD-1").wanted).explain()


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("status:cancelled", "rekindle_status"),
        ("name:order version:1", "rekindle_named"),
        ("step:charge_card", "rekindle_standing"),
        ("error:TimeoutError", "rekindle_step_error"),
        ("basket:fraud-review", "rekindle_pended"),
    ],
)
def test_what_is_rare_is_found_through_an_index_that_knows_it(crowd, text, index):
    """Among a million nobody walks past all the others."""
    ids = Workflow.objects.filter(search(text).wanted).order_by("-pk").values("pk")[:51]

    assert index in ids.explain()


def test_of_what_waits_for_people_an_index_says_that_it_has_not_ended(crowd):
    WorkflowFactory(pended=True, basket="fraud-review")

    plan = Workflow.objects.filter(wanted("people", search(""))).explain()

    assert "rekindle_pended" in plan
    assert "rekindle_in_basket" in plan


# -- on the command line ----------------------------------------------------------------------------------------------


def listed(text):
    out = io.StringIO()
    call_command("rekindle", "list", "--search", text, "--json", stdout=out)
    return {row["key"] for row in json.loads(out.getvalue())}


def test_the_command_line_reads_the_same_language(world):
    assert listed("status:failed name:order*") == {"failed"}
    assert listed("is:orphan") == {"orphan"}


def test_the_command_line_refuses_what_it_does_not_understand(db):
    with pytest.raises(CommandError, match="There is no color: to search by"):
        listed("color:red")

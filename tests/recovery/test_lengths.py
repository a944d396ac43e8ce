"""Which step of how many: told only where those that completed before agree."""

import pytest

from recovery.queries import workflows
from recovery.queries.lengths import lengths
from tests.factories import StepFactory, WorkflowFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_read(monkeypatch):
    monkeypatch.setattr("recovery.queries.lengths._read", {})


def completed(name, *steps, **fields):
    for number in steps:
        one = WorkflowFactory(name=name, completed=True, **fields)
        for _ in range(number):
            StepFactory(workflow=one)
        StepFactory(workflow=one, path=".checks.", position=7)


@pytest.mark.parametrize(
    ("steps", "told"),
    [((4, 4, 4), 4), ((4, 4, 5), None), ((4, 4), None), ((), None)],
    ids=["alike", "different", "too few", "none"],
)
def test_a_length_is_told_where_those_before_agree(steps, told):
    completed("order", *steps)

    assert lengths([("order", 1)]).get(("order", 1)) == told


def test_a_version_has_a_length_of_its_own_and_failures_tell_nothing():
    completed("order", 4, 4, 4)
    completed("order", 2, 2, 2, version=2)
    StepFactory(workflow=WorkflowFactory(name="order", failed=True))

    assert lengths([("order", 1), ("order", 2), ("mail", 1)]) == {("order", 1): 4, ("order", 2): 2, ("mail", 1): None}


def test_what_was_read_lately_is_not_read_again(django_assert_num_queries):
    completed("order", 4, 4, 4)
    lengths([("order", 1)])

    with django_assert_num_queries(0):
        assert lengths([("order", 1)]) == {("order", 1): 4}


@pytest.mark.parametrize(
    ("fields", "begun", "nth"),
    [
        ({"running": True}, 1, "1/4"),
        ({"running": True}, 3, "3/4"),
        ({"running": True}, 5, "#5"),  # another way than those before
        ({"running": True, "progress": {"done": 30, "total": 200}}, 3, "30/200"),
        ({"running": True, "name": "mail"}, 2, "#2"),
        ({"completed": True, "name": "mail"}, 2, "2/2"),
        ({"queued": True}, 0, ""),
    ],
)
def test_the_list_says_which_step_of_how_many(fields, begun, nth):
    completed("order", 4, 4, 4)
    one = WorkflowFactory(**{"name": "order"} | fields)
    for _ in range(begun):
        StepFactory(workflow=one)

    assert workflows.page(workflows.VIEWS["all"][1]()).rows[0].nth == nth

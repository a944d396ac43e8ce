"""What holds for a workflow is written into its row when it starts: the policy's word, else its author's, else the rule."""

import pytest

from workflows import start, start_many
from workflows.definitions import Definition
from workflows.models import Policy, Workflow

pytestmark = pytest.mark.django_db

FIELDS = ("max_recovery_attempts", "stale_after", "run_limit")


def shy(run):
    """Never run."""


def limits(workflow):
    return tuple(getattr(workflow, field) for field in FIELDS)


def test_without_a_word_the_settings_hold():
    """C56."""
    assert limits(start(Definition("shy", shy))) == (3, None, None)


def test_the_author_may_say_otherwise():
    """C56; none at all is also a number."""
    assert limits(start(Definition("shy", shy, max_recovery_attempts=0, stale_after=90, run_limit=5))) == (0, 90, 5)


def test_the_policy_has_the_last_word_and_only_on_what_it_names():
    """C56."""
    Policy.objects.create(name="shy", max_recovery_attempts=7, run_limit=60)

    ids = start_many(Definition("shy", shy, stale_after=90, run_limit=5), [{}, {}])

    assert [limits(Workflow.objects.get(pk=pk)) for pk in ids] == [(7, 90, 60)] * 2


def test_the_policy_of_another_name_says_nothing():
    Policy.objects.create(name="bold", max_recovery_attempts=7)

    assert limits(start(Definition("shy", shy))) == (3, None, None)

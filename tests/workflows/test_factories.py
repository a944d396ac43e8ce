"""The rows that tests make are rows that the engine could have written."""

import pytest
from factory.django import DjangoModelFactory

from tests import factories
from workflows import cancel
from workflows.models import Event, Step, Workflow

pytestmark = pytest.mark.django_db

FACTORIES = [
    one
    for one in vars(factories).values()
    if isinstance(one, type) and issubclass(one, DjangoModelFactory) and one is not DjangoModelFactory
]
TRAITS = [
    (one, trait) for one in FACTORIES for trait in one._meta.parameters if trait not in ("begun", "over", "paused")
]
STATES = [trait for one, trait in TRAITS if one is factories.WorkflowFactory]


@pytest.mark.parametrize("one", FACTORIES, ids=lambda one: one.__name__)
def test_every_factory_stores(one):
    first, second = one(), one()

    assert type(first).objects.filter(pk__in=[first.pk, second.pk]).count() == 2


@pytest.mark.parametrize(("one", "trait"), TRAITS, ids=lambda part: getattr(part, "__name__", part))
def test_every_trait_stores(one, trait):
    made = one(**{trait: True})

    assert type(made).objects.filter(pk=made.pk).exists()


@pytest.mark.parametrize("state", STATES)
def test_the_diary_of_every_state_has_no_gap_and_ends_with_it(state):
    """I5."""
    workflow = factories.WorkflowFactory(**{state: True})
    workflow.refresh_from_db()

    events = list(Event.objects.filter(workflow=workflow).order_by("seq"))
    fences = [event.fence for event in events]
    assert [event.seq for event in events] == list(range(1, workflow.seq + 1))
    assert fences == sorted(fences)
    assert fences[-1] == workflow.fence or workflow.is_finished


def test_what_waits_has_a_step_that_says_so():
    pended = factories.WorkflowFactory(pended=True, basket="desk")

    step = Step.objects.get(workflow=pended)
    assert (step.kind, step.status, step.basket) == ("pend", "waiting", "desk")


def test_every_reason_of_a_pause_and_every_status_has_a_trait():
    made = [factories.WorkflowFactory(**{state: True}) for state in STATES]

    reasons, statuses = Workflow._meta.get_field("pause_reason"), Workflow._meta.get_field("status")
    assert {row.pause_reason for row in made} == {"", *dict(reasons.choices)}
    assert {row.status for row in made} == set(dict(statuses.choices))


def test_a_next_event_goes_on_counting():
    workflow = factories.WorkflowFactory()

    factories.EventFactory(workflow=workflow)
    cancel(workflow.pk)

    assert list(workflow.events.values_list("seq", flat=True)) == [1, 2, 3]

"""A line for whoever comes next, on a workflow or on the death of a worker."""

import pytest

from recovery import notes
from recovery.models import AuditEntry, Note
from recovery.queries.notes import notes_on
from recovery.retention import forget
from tests.factories import RecoveryFactory, WorkerFactory, ago
from workflows.errors import NotFound
from workflows.models import Workflow

HTMX = {"HX-Request": "true"}


def leave(client, workflow, text="the bank is down", **more):
    return client.post(f"/notes/workflow/{workflow.pk}", {"text": text}, **more)


def test_a_note_is_shown_on_the_page_with_who_left_it_and_is_audited(operator, viewer, workflow):
    one = workflow("failed", key="ORD-1")

    done = leave(operator, one)

    assert done["Location"] == f"/workflows/{one.pk}/"
    page = viewer.get(f"/workflows/{one.pk}/").content.decode()
    assert "the bank is down" in page
    assert "otto, " in page
    assert f"/notes/workflow/{one.pk}" not in page  # who only looks reads it
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.subject, entry.subject_id, entry.subject_name) == (
        "note",
        "workflow",
        str(one.pk),
        "order ORD-1",
    )
    assert entry.after == {"note": "the bank is down"}


def test_a_poll_brings_the_note_and_asks_no_more_for_it(operator, viewer, workflow, django_assert_max_num_queries):
    one = workflow("failed")
    leave(operator, one)

    with django_assert_max_num_queries(6):
        assert "the bank is down" in viewer.get(f"/workflows/{one.pk}/", headers=HTMX).content.decode()


def test_a_double_click_leaves_one_note(operator, workflow):
    one = workflow()

    leave(operator, one)
    leave(operator, one)

    assert Note.objects.count() == 1
    assert AuditEntry.objects.count() == 1


def test_a_note_is_one_line_of_plain_text(operator, workflow):
    one = workflow()

    leave(operator, one, "first\nsecond <b>\u202e")

    assert Note.objects.get().text == "first second <b>"
    assert "second &lt;b&gt;" in operator.get(f"/workflows/{one.pk}/").content.decode()


@pytest.mark.parametrize(("text", "sentence"), [("  ", "write a line"), ("x" * 301, "at most 300 are stored")])
def test_a_note_that_is_none_is_refused(operator, workflow, text, sentence):
    response = leave(operator, workflow(), text, headers=HTMX)

    assert response.status_code == 409
    assert sentence in response.content.decode()
    assert not Note.objects.exists()


def test_notes_are_few(operator, workflow, monkeypatch):
    monkeypatch.setattr(notes, "MOST", 2)
    one = workflow()

    answers = [leave(operator, one, text).status_code for text in ("one", "two", "three")]

    assert answers == [302, 302, 409]


def test_a_note_is_removed_once_and_the_audit_remembers_it(operator, workflow):
    one = workflow()
    leave(operator, one)
    pk = Note.objects.get().pk

    for _ in range(2):
        operator.post(f"/notes/workflow/{one.pk}", {"remove": pk}, headers=HTMX)

    assert not Note.objects.exists()
    assert [entry.act for entry in AuditEntry.objects.order_by("id")] == ["note", "remove note"]
    assert AuditEntry.objects.last().before == {"note": "the bank is down", "author": "otto"}


def test_a_note_on_one_thing_is_not_removed_through_another(operator, workflow):
    one, other = workflow(), workflow()
    leave(operator, one)

    operator.post(f"/notes/workflow/{other.pk}", {"remove": Note.objects.get().pk})

    assert Note.objects.exists()


def test_the_death_of_a_worker_has_notes_also_when_the_worker_is_forgotten(operator, workflow):
    worker = WorkerFactory(dead=True, host="host-2", pid=812)
    RecoveryFactory(workflow_id=workflow().pk, worker=worker.pk + 1, worker_name="host-9:1")

    operator.post(f"/notes/worker/{worker.pk}", {"text": "the disk was full"})
    operator.post(f"/notes/worker/{worker.pk + 1}", {"text": "same rack"})

    found = notes_on("worker", [worker.pk, worker.pk + 1, 999_999])
    assert {pk: [str(note) for note in left] for pk, left in found.items()} == {
        str(worker.pk): ["otto: the disk was full"],
        str(worker.pk + 1): ["otto: same rack"],
    }
    assert {entry.subject_name for entry in AuditEntry.objects.all()} == {"host-2:812", "host-9:1"}


@pytest.mark.parametrize(
    ("kind", "pk"),
    [
        ("workflow", "01990000-0000-7000-8000-000000000000"),
        ("workflow", "x"),
        ("worker", "999999"),
        ("worker", "x"),
        ("worker", "٣"),
        ("alert", "1"),
    ],
)
def test_what_never_was_has_no_notes(operator, kind, pk):
    with pytest.raises(NotFound):
        notes.subject(kind, pk)
    assert operator.post(f"/notes/{kind}/{pk}", {"text": "hello"}).status_code == 404


def test_nobody_is_sent_elsewhere_after_leaving_a_note(operator, workflow):
    one = workflow()

    done = operator.post(f"/notes/workflow/{one.pk}", {"text": "x", "back": "https://example.org/"})

    assert done["Location"] == f"/workflows/{one.pk}/"


def test_a_note_outlives_its_workflow_and_goes_with_the_history(operator, workflow):
    one = workflow("failed")
    leave(operator, one)
    Workflow.objects.filter(pk=one.pk).delete()
    forget("worker", float("inf"))
    assert Note.objects.exists()

    Note.objects.update(at=ago(days=401))
    forget("worker", float("inf"))

    assert not Note.objects.exists()

"""Whatever others have written is text: on every page, part of a page and sheet, to whoever looks, with htmx and without."""

from itertools import product

import pytest
from django.urls import reverse

from recovery.templatetags import rekindle as tags
from recovery.urls import urlpatterns
from workflows.models import Workflow

from . import hostile
from .hostile import EVIL, Page, wrongs
from .walking import HTMX, addresses, models, walk

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("demo")]


@pytest.fixture
def boss():
    hostile.build()
    return hostile.boss()


def test_the_reader_of_these_tests_would_notice():
    assert Page(f"<p title={EVIL}>").found
    assert Page(f'<p title="{EVIL}">').found
    assert Page(f"<p>{EVIL}</p>").found
    assert Page("<a href='javascript:alert(1)'>x</a>").found
    assert not Page(str(tags.copy(EVIL))).found


def test_no_page_no_part_and_no_sheet_lets_anything_in(boss):
    seen, shown = set(), 0
    for url, page in walk(boss):
        for answer in (page, boss.get(url, headers=HTMX)):
            assert answer.status_code in (200, 204, 405), f"{url} answered {answer.status_code}"
            assert wrongs(answer) == [] or answer.status_code == 405, url
            shown += "evil" in getattr(answer, "content", b"").decode()
        seen.add(url.partition("?")[0])

    assert len(seen) > 40
    assert shown > 100  # it was really there


def test_every_pattern_that_can_be_looked_at_was(boss):
    assert set(addresses(boss)) == {pattern.name for pattern in urlpatterns}


def test_a_pattern_that_means_nothing_here_is_not_passed_over(db):
    """In an empty world there is no workflow to look at, and the walk says so instead of skipping its pages."""
    with pytest.raises(AssertionError, match="No address of saved_view"):
        addresses(hostile.boss())


def test_nothing_typed_into_an_address_comes_back_as_markup(boss):
    keys = ["q", "view", "tab", "step", "before", "ids", "back", "range", "from", "to", "actor", "subject", "here"]
    for name, urls in addresses(boss).items():
        for url, key in product(urls[:1], keys):
            answer = boss.get(url, {key: EVIL}, headers=HTMX if len(key) % 2 else {})
            assert answer.status_code < 500, (name, key)
            assert answer.status_code == 405 or wrongs(answer) == [], (name, key)


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_a_refused_form_gives_back_what_was_typed_as_text(boss, headers):
    workflow = Workflow.objects.filter(status="failed").first()
    typed = dict.fromkeys(["reason", "number", "basket", "ticket", "result", "new-name", "new-value", "step"], EVIL)
    typed |= {"look": "yes", "back": EVIL, f"v:{EVIL}": EVIL, "v:list": EVIL}

    for act in ("recover", "rerun", "reopen", "resume", "cancel", "fail"):
        answer = boss.post(reverse("rekindle:ask", args=[workflow.pk, act]), typed, headers=headers)
        assert answer.status_code in (200, 409)
        assert wrongs(answer) == []
    for url in (reverse("rekindle:change_mode"), reverse("rekindle:name", args=["three"])):
        answer = boss.post(url, {"mode": EVIL, "reason": EVIL, "concurrency": EVIL}, headers=headers)
        assert answer.status_code == 409
        assert wrongs(answer) == []


def test_the_admin_shows_it_as_text_too(boss):
    for model in models():
        place = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        answers = [boss.get(reverse(f"{place}_changelist"))]
        answers += [boss.get(reverse(f"{place}_change", args=[one.pk])) for one in model._default_manager.all()[:3]]
        for answer in answers:
            assert answer.status_code == 200, place
            assert not [wrong for wrong in wrongs(answer) if "evil" in wrong], place


def test_a_toast_is_data_in_a_header(boss):
    """What was done is told in a header; a line break there would begin another one."""
    workflow = Workflow.objects.filter(status="queued").first()
    url = reverse("rekindle:ask", args=[workflow.pk, "cancel"])
    seen = {f"seen-{workflow.pk}": workflow.fence}

    answer = boss.post(url, seen | {"reason": f"{EVIL}\r\nX-Evil: 1"}, headers=HTMX)

    assert answer.status_code == 204
    assert "X-Evil" not in answer.headers
    assert answer["HX-Trigger"].isascii()

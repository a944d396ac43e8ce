"""Whatever goes wrong is said politely, in the frame."""

from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.test import Client, RequestFactory

from recovery.views import errors


def silent(*_):
    raise OperationalError("secret host did not answer")


def test_an_unknown_address_is_a_page_of_ours(viewer):
    response = viewer.get("/nothing/here")

    assert response.status_code == 404
    assert "There is nothing at this address" in response.content.decode()
    assert "retention may have removed it" in response.content.decode()
    assert "default-src 'self'" in response["Content-Security-Policy"]


def test_a_workflow_that_is_gone_says_why_it_may_be(operator):
    response = operator.get(f"/workflows/{uuid4()}/ask/recover")

    assert response.status_code == 404
    assert "retention may have removed it" in response.content.decode()


def test_those_without_a_role_can_sign_out_and_are_not_polled(nobody):
    page = nobody.get("/workflows/").content.decode()

    assert "no role" in page
    assert 'action="/logout/"' in page
    assert "data-live=" not in page


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_a_silent_database_is_a_polite_503_that_asks_again(viewer, headers):
    with connection.execute_wrapper(silent):
        response = viewer.get("/workflows/", headers=headers)

    page = response.content.decode()
    assert response.status_code == 503
    assert response["Retry-After"] == "5"
    assert "The database does not answer" in page
    assert 'data-retry="5"' in page
    assert "secret" not in page


def test_a_broken_page_is_in_the_frame_and_tells_no_secrets(db):
    response = errors.server_error(RequestFactory().get("/workflows/"))

    assert response.status_code == 500
    assert "This page broke" in response.content.decode()
    assert "rail" in response.content.decode()


def test_a_stale_form_says_that_nothing_was_changed(db):
    user = User.objects.create_superuser("boss")
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(user)

    response = strict.post(f"/workflows/{uuid4()}/ask/recover")

    assert response.status_code == 403
    assert "Nothing was changed" in response.content.decode()

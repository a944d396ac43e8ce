from django.db import OperationalError, connection
from django.test import Client


def test_health_is_for_everyone(db):
    response = Client().get("/healthz")

    assert response.status_code == 200
    assert response.json()["database_ms"] >= 0


def test_a_silent_database_is_a_503(db):
    def silent(*_):
        raise OperationalError("secret host did not answer")

    with connection.execute_wrapper(silent):
        response = Client().get("/healthz")

    assert response.status_code == 503
    assert "secret" not in response.content.decode()

"""Birthday messages: sent at nine in the morning UTC, however late, and every year again.

The receiver is told who asks by a key that stays the same over all tries, so that it can drop what it had before. The
message counts as sent once the receiver said so; only then is next year's started, in the commit that records it.
"""

import json
import logging
from datetime import UTC, date, datetime
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from django.db import transaction

from workflows import Backoff, Run, start, workflow
from workflows.errors import StepFailed

log = logging.getLogger("rekindle")

MAX_RETRIES = 3
TRY_AGAIN_LATER = {408, 425, 429}  # the only answers below 500 that are not for ever


class Rejected(Exception):
    """The receiver will never take it."""


def arrange(user_id: str, *, year: int, **person: str) -> Any:
    """Start the message of that year, once: `first_name`, `last_name`, `born` (a date) and `webhook` say the rest."""
    at = birthday(person["born"], year)
    return start(birthday_message, {"user_id": user_id, "year": year, **person}, key=f"{user_id}:{year}", at=at)


@workflow("birthday_message", search=("user_id",))
def birthday_message(
    run: Run, user_id: str, year: int, first_name: str, last_name: str, born: str, webhook: str
) -> str:
    """Returns the id of next year's."""
    message = {
        "message": f"Hey, {first_name} {last_name} it's your birthday",
        "idempotencyKey": str(run.id),
        "eventId": str(run.id),
    }
    try:
        run.step(send, webhook, message, user_id, retries=MAX_RETRIES, backoff=Backoff(60), give_up_on=(Rejected,))
    except StepFailed as failure:
        log.error("Event moved to DLQ", extra={"eventId": str(run.id), "lastError": failure.error["message"]})
        raise
    person = {"first_name": first_name, "last_name": last_name, "born": born, "webhook": webhook}
    return str(run.step(start_next_year, user_id, year, person, atomic=True))


def send(webhook: str, message: dict[str, str], user_id: str) -> int:
    """A network failure or a server in trouble is tried again; a refusal is not."""
    who = {"eventId": message["eventId"], "userId": user_id}
    try:
        return _post(webhook, message)
    except Exception as error:
        log.error("Event processing failed", extra=who | {"error": str(error), "attempts": Run.current().attempt})
        raise


def start_next_year(user_id: str, year: int, person: dict[str, str]) -> str:
    """Its own row, this step's record and the first line of its diary commit together, or not at all."""
    from workflows.models import Workflow  # where a workflow is defined no model is imported

    following = arrange(user_id, year=year + 1, **person)
    this = Workflow.objects.get(pk=Run.current().id)
    facts = {"eventId": str(this.pk), "userId": user_id, "latenessMinutes": int((this.lateness or 0) // 60)}
    transaction.on_commit(lambda: log.info("Event processed successfully", extra=facts))
    return str(following.pk)


def birthday(born: str, year: int) -> datetime:
    """Nine in the morning. Who was born on a leap day has it on the last of February in other years."""
    day = date.fromisoformat(born)
    try:
        day = day.replace(year=year)
    except ValueError:
        day = day.replace(year=year, day=28)
    return datetime(day.year, day.month, day.day, 9, tzinfo=UTC)


def _post(webhook: str, message: dict[str, str]) -> int:
    if not webhook.startswith(("http://", "https://")):
        raise Rejected(f"{webhook!r} is no web address.")
    headers = {"Content-Type": "application/json", "Idempotency-Key": message["idempotencyKey"]}
    request = Request(webhook, json.dumps(message).encode(), headers, method="POST")  # noqa: S310  (checked above)
    try:
        with urlopen(request, timeout=10) as answer:  # noqa: S310  (checked above)
            return int(answer.status)
    except HTTPError as error:
        if error.code < 500 and error.code not in TRY_AGAIN_LATER:
            raise Rejected(f"The receiver answered {error.code}.") from None
        raise

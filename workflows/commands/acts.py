"""What an operator does to one workflow: each act is one verb of the engine, signed `cli:USER`."""

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any
from uuid import UUID

from .. import verbs
from ..conf import settings
from ..models import Workflow
from ..values import text
from .answer import Answer, Options, Verb
from .asking import find_id, read_json, read_object, who
from .show import row

REASON = 500


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", help="in full, or at least 8 characters of its beginning or end")
    parser.add_argument("--reason", default="", metavar="TEXT", help="for the diary")


def resume_arguments(parser: ArgumentParser) -> None:
    add_arguments(parser)
    parser.add_argument("--basket", default="", help="which pend is answered; else the deepest")
    parser.add_argument("--variables", default="{}", metavar="JSON", help="variables to set")
    parser.add_argument("--result", default="null", metavar="JSON", help="the result of the pended step")
    parser.add_argument("--done", action="store_true", help="its work was done elsewhere: do not run the step again")


def move_arguments(parser: ArgumentParser) -> None:
    add_arguments(parser)
    parser.add_argument("--to", required=True, metavar="BASKET", help="where it shall wait from now on")
    parser.add_argument("--basket", default="", help="which pend is moved; else the deepest")


def signal_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", help="in full, or at least 8 characters of its beginning or end")
    parser.add_argument("name", help="the signal's name")
    parser.add_argument("--data", default="null", metavar="JSON", help="what it carries, or - to read it from stdin")
    parser.add_argument("--uid", default="", help="counts once: a second signal with this id changes nothing")


def act(verb: Callable[..., object]) -> Callable[[Options], Answer]:
    def run(options: Options) -> Answer:
        reason = text(options["reason"], "The reason", REASON)
        pk = find_id(options["id"])
        verb(pk, by=who(), reason=reason)
        return present(pk)

    return run


def resume(verb: Callable[..., object]) -> Callable[[Options], Answer]:
    def run(options: Options) -> Answer:
        given: dict[str, Any] = {
            "reason": text(options["reason"], "The reason", REASON),
            "basket": text(options["basket"], "The basket", 80),
            "variables": read_object(options["variables"], "The variables"),
            "result": read_json(options["result"], "The result"),
            "done": options["done"],
        }
        pk = find_id(options["id"])
        verb(pk, by=who(), **given)
        return present(pk)

    return run


def move(verb: Callable[..., object]) -> Callable[[Options], Answer]:
    def run(options: Options) -> Answer:
        reason = text(options["reason"], "The reason", REASON)
        basket = text(options["basket"], "The basket", 80)
        pk = find_id(options["id"])
        verb(pk, options["to"], basket=basket, by=who(), reason=reason)
        return present(pk)

    return run


def send_signal(options: Options) -> Answer:
    given = read_json(options["data"], "The signal's data")
    pk = find_id(options["id"])
    sent = verbs.signal(pk, options["name"], given, uid=options["uid"], by=who())
    told = "The signal is in the inbox." if sent else "A signal with this id was there already; nothing was changed."
    return Answer({"id": pk, "sent": sent}, told)


def present(pk: UUID) -> Answer:
    """The truth after the act, as stored."""
    workflow = Workflow.objects.using(settings().database).get(pk=pk)
    asked = f"; {workflow.asked['what']} is asked of its worker" if workflow.asked else ""
    return Answer(row(workflow), f"{workflow} ({pk}) is {workflow.status}{asked}.")


ACTS = {
    "recover": Verb("take over an orphan, or revive a failed workflow", add_arguments, act(verbs.recover)),
    "fail": Verb("end a workflow as failed", add_arguments, act(verbs.fail)),
    "cancel": Verb("cancel a workflow, or ask its worker to", add_arguments, act(verbs.cancel)),
    "pause": Verb("suspend a workflow until it is resumed", add_arguments, act(verbs.pause)),
    "resume": Verb("let a suspended workflow go on, or answer a pend", resume_arguments, resume(verbs.resume)),
    "move": Verb("have what waits for a person wait in another basket", move_arguments, move(verbs.move_to)),
    "revive": Verb("continue a failed or cancelled workflow where it stopped", add_arguments, act(verbs.revive)),
    "discard": Verb("put a dead letter aside", add_arguments, act(verbs.discard)),
}
SIGNAL = Verb("put a message into a workflow's inbox", signal_arguments, send_signal)

"""What recovery adds to the command line: `sweep`, `check`, `plan`, `batch`, `chaos`, and acts that are audited."""

from argparse import ArgumentParser
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlencode

from workflows.commands import VERBS as ENGINE
from workflows.commands import Answer, Verb, again
from workflows.commands.acts import REASON, act, add_arguments, move, present, resume
from workflows.commands.answer import Options
from workflows.commands.asking import find_id, read_object, who
from workflows.commands.show import list_arguments, list_workflows, show, show_arguments
from workflows.commands.table import clean, pairs, to_json
from workflows.conf import settings
from workflows.errors import BadInput, NotFound
from workflows.models import Workflow
from workflows.values import text

from . import acts, batches, case, checking, planning
from .bounds import bounded
from .chaos.command import CHAOS
from .queries import batches as queries
from .search import Search, search
from .sweep import BUDGET, sweep_now

SENTENCE = 600  # characters of one


def no_arguments(parser: ArgumentParser) -> None:
    """None."""


def case_arguments(parser: ArgumentParser) -> None:
    show_arguments(parser)
    parser.add_argument("--case", action="store_true", help="as a case document: its paths, pends and variables")


def search_arguments(parser: ArgumentParser) -> None:
    list_arguments(parser)
    parser.add_argument(
        "--search", default="", metavar="TEXT", help="as on the page: 'status:failed name:order* age:>10m'"
    )


def recover_arguments(parser: ArgumentParser) -> None:
    add_arguments(parser)
    parser.add_argument("--variables", default="{}", metavar="JSON", help="variables to change; each keeps its type")
    parser.add_argument("--reset-attempts", action="store_true", help="count its attempts from the beginning")


def batch_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("act", choices=list(batches.VERBS), help="what to do to each")
    parser.add_argument("--search", required=True, metavar="TEXT", help="as on the page: 'status:failed name:order*'")
    parser.add_argument("--basket", default="", help="which wait is resumed or moved; else the deepest")
    parser.add_argument("--to", default="", metavar="BASKET", help="where a move goes")
    parser.add_argument("--reason", default="", metavar="TEXT", help="for the diary and the audit")
    parser.add_argument(
        "--expect", type=int, metavar="N", help="begin, unless more than N match; without it only count"
    )


def sweep(options: Options) -> Answer:
    with bounded(settings().database, BUDGET):
        done = sweep_now("operator")
    text = (
        "Found {found}: released {released}, gave up {gave_up}, cancelled {cancelled}, left {held} as they are.".format(
            **done
        )
    )
    return Answer(done, text)


def check(options: Options) -> Answer:
    found = checking.check(find_id(options["id"]))
    if found.reason == checking.Word.NO_JOB:
        raise NotFound(f"{found.why[0].upper()}{found.why[1:]}.")
    return Answer(found.as_json(), pairs([(name.replace("_", " "), told) for name, told in found.as_json().items()]))


def plan(options: Options) -> Answer:
    found = planning.plan(find_id(options["id"]))
    return Answer(found.as_json(), "\n".join(clean(sentence, SENTENCE) for sentence in found.sentences))


def batch(options: Options) -> Answer:
    found = _searched(options["search"])
    expected = options["expect"]
    if expected is None:
        matching = queries.matching(found.wanted)
        said = f"{matching.count}{' or more' if matching.more else ''} match; nothing was done."
        return Answer({"matching": matching.count}, f"{said} Add --expect {matching.count} to {options['act']} them.")
    if expected < 1:
        raise BadInput(f"--expect must be the number of workflows you saw, not {expected}.")
    chosen: Any = {"chosen": found.text or "All", "query": urlencode({"q": found.text}), "confirmed": expected}
    chosen |= {name: text(options[name], "The basket's name", 80) for name in ("basket", "to")}
    reason = text(options["reason"], "The reason", REASON)
    begun = batches.begin(options["act"], queries.workflows(found.wanted), by=who(), via="cli", reason=reason, **chosen)
    told = f"Batch {begun.pk} has begun: {begun.act} {begun.total}. Workers and the scheduler carry it out."
    return Answer({"id": begun.pk, "total": begun.total}, told)


def list_found(options: Options) -> Answer:
    return list_workflows(options, _searched(options["search"]).wanted)


def show_case(options: Options) -> Answer:
    if not options["case"]:
        return show(options)
    document = case.case(find_id(options["id"]))
    return Answer(document, to_json(document))


def recover(options: Options) -> Answer:
    reason = text(options["reason"], "The reason", REASON)
    variables = read_object(options["variables"], "The variables")
    pk = find_id(options["id"])
    acts.recover(pk, variables=variables, reset_attempts=options["reset_attempts"], by=who(), via="cli", reason=reason)
    return present(pk)


def _searched(words: str) -> Search:
    """What is not understood is refused: a slip must not list, or act on, more than was meant."""
    found = search(words)
    if found.hints:
        raise BadInput(" ".join(hint.sentence for hint in found.hints))
    return found


def _generation(verb: Callable[..., acts.Done]) -> Callable[..., Workflow]:
    """For `again`, which prints the row that came of it."""
    return lambda *words, **given: verb(*words, via="cli", **given).workflow


def _audited(name: str) -> Verb:
    return ENGINE[name]._replace(run=act(partial(getattr(acts, name), via="cli")))


VERBS = {
    "sweep": Verb("look for dead workers now and take over what they held", no_arguments, sweep),
    "check": Verb("say what recovery thinks of a workflow", show_arguments, check),
    "plan": Verb("say what recovery would do with a workflow", show_arguments, plan),
    "batch": Verb("do one thing to all workflows that match", batch_arguments, batch),
    "list": ENGINE["list"]._replace(add_arguments=search_arguments, run=list_found),
    "show": ENGINE["show"]._replace(add_arguments=case_arguments, run=show_case),
    "recover": ENGINE["recover"]._replace(add_arguments=recover_arguments, run=recover),
    "resume": ENGINE["resume"]._replace(run=resume(partial(acts.resume, via="cli"))),
    "move": ENGINE["move"]._replace(run=move(partial(acts.move_to, via="cli"))),
    "reopen": ENGINE["reopen"]._replace(run=again.run(_generation(acts.reopen), "ticket", "basket")),
    "rerun": ENGINE["rerun"]._replace(run=again.run(_generation(acts.rerun_from), "step", "path", "occurrence")),
    **{name: _audited(name) for name in ("fail", "cancel", "pause", "revive", "discard")},
    "chaos": CHAOS,
}

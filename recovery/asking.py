"""What is asked before an act, and the act: one dialog for all of them, for one workflow or for several.

`foresee` says what would happen to one workflow, with the code that would do it and without the database. `perform`
does it through `acts`, which audits, fences and does nothing twice.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from workflows.definitions import discover
from workflows.keeping import keep
from workflows.models import PauseReason, Status, Step, Workflow

from . import acts
from .checking import check_of, is_known
from .planning import Again, plan_of
from .queries.workflow import Look
from .sentences import count


@dataclass(frozen=True, slots=True)
class Act:
    name: str
    word: str
    consequence: str
    needs_reason: bool = False
    bad: bool = False


ACTS = {
    act.name: act
    for act in (
        Act("recover", "Recover", "It goes on after its last finished step. Finished steps do not run again."),
        Act(
            "revive",
            "Revive",
            "It goes on where it stopped; the step that failed has its tries anew.",
            needs_reason=True,
        ),
        Act("rerun", "Run again", "A new generation begins; this one is kept as it was."),
        Act("reopen", "Reopen", "A new generation enters the handler of a ticket; this one is kept as it was."),
        Act("resume", "Resume", "It goes on where it waits."),
        Act(
            "move",
            "Move",
            "It waits in the other basket from now on, with its variables and its deadline. Nothing of it runs.",
        ),
        Act("pause", "Pause", "It stops before its next step and waits until somebody resumes it."),
        Act("cancel", "Cancel", "It ends before its next step. What was finished is kept.", bad=True),
        Act("fail", "Fail", "It ends now. A worker that holds it can write nothing more.", needs_reason=True, bad=True),
        Act("discard", "Put aside", "It stays readable, but nobody needs to look at it any more."),
    )
}


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody asked for in the dialog."""

    reason: str = ""
    token: str = ""
    fence: int | None = None
    variables: dict[str, Any] = field(default_factory=dict)
    reset: bool = False
    step: tuple[str, int] | None = None  # path and position
    ticket: str = ""
    basket: str = ""
    path: str = ""
    to: str = ""  # another basket
    result: Any = None
    done: bool = False


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What would happen to one workflow. With a refusal: nothing would."""

    look: Look
    refusal: str = ""
    sentences: list[str] = field(default_factory=list)
    again: list[Again] = field(default_factory=list)

    @property
    def workflow(self) -> Workflow:
        return self.look.workflow

    @property
    def risky(self) -> list[str]:
        """Steps that would run a second time although nobody has said that they may."""
        return [] if self.refusal else [step.name for step in self.again if not step.idempotent]


@dataclass(frozen=True, slots=True)
class Alike:
    """Workflows of one name to which the same would happen: told once."""

    first: Foreseen
    count: int

    @property
    def workflow(self) -> Workflow:
        return self.first.workflow

    @property
    def others(self) -> int:
        return self.count - 1

    @property
    def refusal(self) -> str:
        return self.first.refusal

    @property
    def sentences(self) -> list[str]:
        """Without its name, which stands above them."""
        return _unnamed(self.first)

    @property
    def risky(self) -> list[str]:
        return self.first.risky


def alike(foreseen: list[Foreseen]) -> list[Alike]:
    """In the order in which each kind comes first."""
    found: dict[Any, list[Foreseen]] = {}
    for each in foreseen:
        told = (each.workflow.name, each.refusal, *_unnamed(each), *each.risky)
        found.setdefault(told, []).append(each)
    return [Alike(group[0], len(group)) for group in found.values()]


def word_for(act: Act, workflow: Workflow) -> str:
    """What is over is revived, in the words of the engine."""
    return "Revive" if act.name == "recover" and workflow.is_finished else act.word


def needs_reason(act: Act, looks: list[Look]) -> bool:
    """For whatever ends or brings back to life, and for more than one."""
    return act.needs_reason or len(looks) > 1 or any(word_for(act, look.workflow) == "Revive" for look in looks)


def foresee(act: Act, look: Look, wish: Wish) -> Foreseen:
    if act.name == "revive" and not look.workflow.is_finished:
        return Foreseen(look, "it has not ended")
    if act.name in ("recover", "revive"):
        return _recovery(look)
    if act.name == "rerun":
        return _rerun(look, wish)
    if refusal := REFUSALS[act.name](look):
        return Foreseen(look, refusal)
    return Foreseen(look, sentences=[_consequence(act, look)])


def summary(act: Act, foreseen: list[Foreseen]) -> str:
    """Will recover 3 of 4; 1 is skipped."""
    willing = sum(not each.refusal for each in foreseen)
    skipped = len(foreseen) - willing
    left = f"; {skipped} {'is' if skipped == 1 else 'are'} skipped" if skipped else ""
    return f"Will {act.word.lower()} {willing} of {len(foreseen)}{left}."


def outlook(act: Act, foreseen: list[Foreseen], total: int, *, more: bool) -> str:
    """The same for a batch, of which only a sample can be foreseen."""
    if not total:
        return "None does."
    if total == len(foreseen):
        return summary(act, foreseen)
    willing, left = sum(not each.refusal for each in foreseen), total - len(foreseen)
    skipped = f" and {len(foreseen) - willing} skipped" if willing < len(foreseen) else ""
    said = f"Of the oldest {len(foreseen)}, {willing} would be done{skipped}."
    rest = (
        f"The other {left:,} are judged when their turn comes." if left > 1 else "The last one is judged in its turn."
    )
    limit = f"More than {total:,} match, and a batch takes no more: ask again when it is done." if more else ""
    return " ".join(part for part in (said, rest, limit) if part)


def perform(act: Act, look: Look, wish: Wish, *, by: str) -> acts.Done:
    pk = look.workflow.pk
    signed: Any = {"by": by, "via": "page", "reason": wish.reason, "fence": wish.fence, "token": wish.token}
    if act.name == "recover":
        if look.workflow.is_finished and not wish.variables:
            return acts.revive(pk, **signed)
        return acts.recover(pk, variables=wish.variables, reset_attempts=wish.reset, **signed)
    if act.name == "rerun":
        step = _step(look, wish.step)
        where: Any = {"path": step.path, "occurrence": step.occurrence} if step else {}
        return acts.rerun_from(pk, step.name if step else "", variables=wish.variables, **where, **signed)
    if act.name == "reopen":
        return acts.reopen(pk, wish.ticket, basket=wish.basket, variables=wish.variables, **signed)
    if act.name == "resume":
        given: Any = {"basket": wish.basket, "path": wish.path, "result": wish.result, "done": wish.done}
        return acts.resume(pk, variables=wish.variables, **given, **signed)
    if act.name == "move":
        return acts.move_to(pk, wish.to, basket=wish.basket, path=wish.path, **signed)
    simple: dict[str, Callable[..., acts.Done]] = {
        "revive": acts.revive,
        "pause": acts.pause,
        "cancel": acts.cancel,
        "fail": acts.fail,
        "discard": acts.discard,
    }
    return simple[act.name](pk, **signed)


def tickets(workflow: Workflow) -> list[str]:
    """Those its code knows here."""
    definition = discover().get(workflow.name)
    return sorted(definition.tickets) if definition else []


def choosable(look: Look) -> list[Step]:
    """Steps from which it can be run again."""
    return [step for step in look.steps if step.kind == Step.Kind.STEP and step.status != Step.Status.DROPPED]


def pends(look: Look) -> list[Step]:
    """What a person can answer, the deepest first."""
    return [step for step in look.seen.waits if step.basket and step.kind != Step.Kind.SIGNAL]


# -- parts ------------------------------------------------------------------------------------------------------------


def _recovery(look: Look) -> Foreseen:
    workflow, seen = look.workflow, look.seen
    if seen.successor:
        return Foreseen(look, f"it was run again as generation {workflow.generation + 1}; act on that one")
    found = check_of(
        workflow, workflow.worker, seen.steps, seen.now, locked=seen.locked, known=is_known(workflow), mode=seen.mode
    )
    plan = plan_of(workflow, seen.steps, found)
    return Foreseen(look, plan.refusal, plan.sentences, plan.again)


def _rerun(look: Look, wish: Wish) -> Foreseen:
    if refusal := _why_not_again(look):
        return Foreseen(look, refusal)
    step = _step(look, wish.step)
    if step is None:
        said = "Will run again from the top: nothing is kept, every step runs again."
        return Foreseen(look, sentences=[said], again=[_again(each) for each in choosable(look)])
    kept, _ = keep(list(look.steps), step)
    bodies = [each for each in choosable(look) if each.pk in kept and each.pk != step.pk]
    again = [_again(each) for each in choosable(look) if each not in bodies]
    said = f"Will run again from {step.name}: {count(len(bodies), 'step')} kept, {len(again)} run again."
    return Foreseen(look, sentences=[said], again=again)


def _unnamed(foreseen: Foreseen) -> list[str]:
    return [sentence.replace(f" {foreseen.workflow}:", ":") for sentence in foreseen.sentences]


def _again(step: Step) -> Again:
    return Again(step.path, step.name, step.idempotent, False)


def _step(look: Look, place: tuple[str, int] | None) -> Step | None:
    return next((step for step in choosable(look) if (step.path, step.position) == place), None)


def _why_not_again(look: Look) -> str:
    if look.seen.successor:
        return f"it was run again as generation {look.workflow.generation + 1}; act on that one"
    return "" if look.workflow.is_finished else "it has not ended; cancel or fail it first"


def _why_not_reopen(look: Look) -> str:
    if look.workflow.pause_reason != PauseReason.BLOCKED and (why := _why_not_again(look)):
        return why
    return "" if tickets(look.workflow) else f"the code of {look.workflow.name} has no tickets"


def _why_not_resume(look: Look) -> str:
    workflow = look.workflow
    if workflow.pause_reason == PauseReason.SUSPENDED or (workflow.asked or {}).get("what") == "pause" or pends(look):
        return ""
    return "it has ended" if workflow.is_finished else "nothing of it waits for a person"


def _why_not_move(look: Look) -> str:
    if look.workflow.is_finished:
        return "it has ended"
    return "" if pends(look) else "nothing of it waits for a person"


def _why_ended(look: Look) -> str:
    return f"it has ended already ({look.workflow.status})" if look.workflow.is_finished else ""


def _why_not_discard(look: Look) -> str:
    return "" if look.workflow.status == Status.FAILED else "only what has failed is put aside"


def _consequence(act: Act, look: Look) -> str:
    worker = look.workflow.worker
    if act.name in ("cancel", "pause") and worker:
        return f"{worker} is asked to {act.name} it, and does so before its next step."
    return {
        "cancel": "It is cancelled at once: nobody holds it.",
        "pause": "It is suspended at once: nobody holds it.",
    }.get(act.name, act.consequence)


REFUSALS: dict[str, Callable[[Look], str]] = {
    "reopen": _why_not_reopen,
    "resume": _why_not_resume,
    "move": _why_not_move,
    "pause": _why_ended,
    "cancel": _why_ended,
    "fail": _why_ended,
    "discard": _why_not_discard,
}

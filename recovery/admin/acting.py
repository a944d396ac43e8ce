"""Workflows: to be looked at, and to be acted upon through the one place for acts.

An action first shows a page with what it would do to each selected workflow; the page carries the fence of each, so
that what changed in between is refused. It needs no JavaScript.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse

from workflows.errors import Refused
from workflows.models import Workflow

from .. import acts, planning
from .looking import ReadOnly

ACT = "rekindle.act_on_workflow"
MOST = 100  # selected at once; the dashboard acts on more, in the background

ENDS = {
    "fail": "It ends as failed, now. Whoever holds it can write nothing more.",
    "cancel": "It is cancelled; if a worker holds it, that worker is asked to stop before its next step.",
}


@admin.register(Workflow)
class WorkflowAdmin(ReadOnly):
    list_display = ["id", "name", "version", "key", "status", "pause_reason", "recoveries", "worker", "created_at"]
    list_filter = ["status"]
    list_select_related = ["worker"]
    search_fields = ["=id", "=name", "=key"]
    payload = ("input", "variables", "output", "error", "search", "progress")
    actions = ["recover", "revive", "cancel", "fail"]

    def has_act_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(ACT)

    @admin.action(permissions=["act"], description="Recover selected workflows …")
    def recover(self, request: HttpRequest, selected: QuerySet[Workflow]) -> HttpResponse | None:
        return self._ask_or_do(request, selected, "recover", acts.recover)

    @admin.action(permissions=["act"], description="Revive selected workflows …")
    def revive(self, request: HttpRequest, selected: QuerySet[Workflow]) -> HttpResponse | None:
        return self._ask_or_do(request, selected, "revive", acts.revive)

    @admin.action(permissions=["act"], description="Cancel selected workflows …")
    def cancel(self, request: HttpRequest, selected: QuerySet[Workflow]) -> HttpResponse | None:
        return self._ask_or_do(request, selected, "cancel", acts.cancel)

    @admin.action(permissions=["act"], description="Fail selected workflows …")
    def fail(self, request: HttpRequest, selected: QuerySet[Workflow]) -> HttpResponse | None:
        return self._ask_or_do(request, selected, "fail", acts.fail)

    def _ask_or_do(
        self, request: HttpRequest, selected: QuerySet[Workflow], name: str, act: Callable[..., acts.Done]
    ) -> HttpResponse | None:
        workflows = list(selected.order_by("pk")[: MOST + 1])
        if len(workflows) > MOST:
            messages.error(request, f"Nothing was done: at most {MOST} workflows can be selected here.")
            return None
        reason = request.POST.get("reason", "").strip()[:500]
        if "confirmed" not in request.POST:
            return self._ask(request, workflows, name)
        if not reason:
            return self._ask(request, workflows, name, "Nothing was changed: say why, a reason is required.")
        for workflow in workflows:
            self._do(request, workflow.pk, act, reason)
        return HttpResponseRedirect(request.get_full_path())

    def _do(self, request: HttpRequest, pk: UUID, act: Callable[..., acts.Done], reason: str) -> None:
        """One item. A refused one says why and does not stop the others."""
        seen = request.POST.get(f"fence-{pk}", "")
        fence = int(seen) if seen.isdecimal() else None
        try:
            done = act(pk, by=request.user.get_username(), via="admin", reason=reason, fence=fence)
        except Refused as refusal:
            messages.error(request, str(refusal))
        else:
            messages.success(request, done.sentence) if done.changed else messages.info(request, done.sentence)

    def _ask(self, request: HttpRequest, workflows: list[Workflow], name: str, trouble: str = "") -> HttpResponse:
        count = f"{len(workflows)} workflow{'' if len(workflows) == 1 else 's'}"
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "title": f"{name.capitalize()} {count}?",
            "button": f"{name.capitalize()} {count}",
            "opts": self.opts,
            "action": name,
            "checkbox": ACTION_CHECKBOX_NAME,
            "items": [(workflow, _what(workflow, name)) for workflow in workflows],
            "trouble": trouble,
        }
        return TemplateResponse(request, "rekindle/admin/confirm.html", context)


def _what(workflow: Workflow, name: str) -> list[str]:
    """What the act would do to it, in sentences."""
    if name in ENDS:
        ended = f"Nothing: it has ended already ({workflow.status})."
        return [ended if workflow.is_finished else ENDS[name]]
    if name == "revive" and workflow.status not in ("failed", "cancelled"):
        return [f"Will not revive {workflow} ({workflow.status}): only what has failed or was cancelled can be."]
    try:
        return planning.plan(workflow.pk).sentences
    except Refused as refusal:
        return [str(refusal)]

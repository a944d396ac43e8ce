"""Three groups: a viewer sees, an operator acts, an admin configures."""

from typing import Any

OURS = ("rekindle", "rekindle_recovery")
ROLES = {
    "Rekindle viewer": (),
    "Rekindle operator": ("act_on_workflow", "see_payload"),
    "Rekindle admin": (
        "act_on_workflow",
        "see_payload",
        "configure",
        "add_policy",
        "change_policy",
        "add_alertrule",
        "change_alertrule",
    ),
}


def synchronise(**_: Any) -> None:
    from django.contrib.auth.models import Group, Permission

    ours = Permission.objects.filter(content_type__app_label__in=OURS)
    for name, codenames in ROLES.items():
        group, _created = Group.objects.get_or_create(name=name)
        group.permissions.add(*ours.filter(codename__startswith="view_"), *ours.filter(codename__in=codenames))

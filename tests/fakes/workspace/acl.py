"""Who may do what with a job, as the Permissions API writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.fakes.workspace.http.exchange import Refused

# the kind, such as `group_name`, and the name
Principal = tuple[str, str]

OWNER = "IS_OWNER"
LEVELS = ("CAN_VIEW", "CAN_MANAGE_RUN", "CAN_MANAGE", OWNER)
_KINDS = ("user_name", "group_name", "service_principal_name")
_ADMINS = {
    "group_name": "admins",
    "all_permissions": [
        {"permission_level": "CAN_MANAGE", "inherited": True, "inherited_from_object": ["/jobs/"]},
    ],
}


def entries(written: Iterable[Mapping[str, Any]]) -> dict[Principal, str]:
    """The level of each principal, the last one counts.

    Raises:
        Refused: 400, for an entry that no job can have.
    """
    return dict(_entry(each) for each in written)


def _entry(written: Mapping[str, Any]) -> tuple[Principal, str]:
    named = [(kind, str(written[kind])) for kind in _KINDS if written.get(kind)]
    level = str(written.get("permission_level", ""))
    if len(named) != 1:
        raise Refused(400, "INVALID_PARAMETER_VALUE", f"Exactly one of {', '.join(_KINDS)} must be given.")
    if level not in LEVELS:
        raise Refused(400, "INVALID_PARAMETER_VALUE", f"Permission type {level} is not supported on job.")
    if level == OWNER and named[0][0] == "group_name":
        raise Refused(400, "INVALID_PARAMETER_VALUE", "Groups can not be owners.")
    return named[0], level


def owner_of(acl: Mapping[Principal, str]) -> Principal:
    """The one owner.

    Raises:
        Refused: 400, when there are none or several.
    """
    owners = [principal for principal, level in acl.items() if level == OWNER]
    if len(owners) != 1:
        raise Refused(400, "INVALID_PARAMETER_VALUE", "The job must have exactly one owner.")
    return owners[0]


def shown(acl: Mapping[Principal, str]) -> Sequence[Mapping[str, Any]]:
    """The list as the server answers it: by name, with what comes from above."""
    own = [
        {kind: name, "display_name": name, "all_permissions": [{"permission_level": level, "inherited": False}]}
        for (kind, name), level in sorted(acl.items(), key=lambda each: each[0][1])
    ]
    return [*own, _ADMINS]

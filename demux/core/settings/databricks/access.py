"""Whom the jobs run as, who may see and run them, and the login of who installs them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from demux.core.settings.databricks.values import ApplicationId, Email, Principal, Token, matching
from demux.core.settings.types import Secret, Section, rule

# what databricks-sdk calls the login of a service principal by its secret
_BY_SECRET = "oauth-m2m"


class PrincipalKind(Enum):
    """What a principal is; the values are fields of the Permissions API."""

    GROUP = "group_name"
    SERVICE_PRINCIPAL = "service_principal_name"
    USER = "user_name"


class AccessLevel(Enum):
    """What a principal may do with a job; the values are the Permissions API's own."""

    CAN_MANAGE = "CAN_MANAGE"
    CAN_MANAGE_RUN = "CAN_MANAGE_RUN"
    CAN_VIEW = "CAN_VIEW"


_Host = Annotated[
    str,
    matching(r"https?://[^/?#@\s]+/?", "the workspace's URL up to the host, such as https://adb-1.azuredatabricks.net"),
]


class LoginSettings(Section):
    """How the commands log in at the workspace, where the environment and ~/.databrickscfg do not say it."""

    hints: ClassVar[Mapping[str, str]] = {
        "token": "a token comes from DATABRICKS_TOKEN or from a profile, never from settings"
    }

    host: _Host | None = Field(
        default=None, description="URL of the workspace. Default: DATABRICKS_HOST, or the profile's."
    )
    profile: Token | None = Field(default=None, description="Profile of ~/.databrickscfg.")
    auth_type: Token | None = Field(
        default=None,
        description="How databricks-sdk logs in, such as oauth-m2m, github-oidc, env-oidc, file-oidc, azure-cli. "
        "Default: the first way that works.",
    )
    client_id: Principal | None = Field(
        default=None, description="Application id of the service principal that logs in, by OAuth."
    )
    client_secret: Secret | None = Field(
        default=None,
        description="Its OAuth secret: secret:env/NAME or secret:file/PATH. Default: none, by workload identity.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> LoginSettings:
        if self.client_secret is not None and self.client_id is None:
            raise rule("client_secret needs client_id")
        if self.client_secret is not None and self.client_secret.startswith("secret:databricks/"):
            raise rule("client_secret must be secret:env/NAME or secret:file/PATH: a scope is read after the login")
        if self.client_secret is not None and self.auth_type not in {None, _BY_SECRET}:
            raise rule(f"client_secret is for auth_type {_BY_SECRET}, not {self.auth_type}; take out one of the two")
        return self


class RunAsSettings(Section):
    """Whom the jobs run as."""

    user: Email | None = Field(default=None, description="E-mail address of the user. Default: who owns the jobs.")
    service_principal: ApplicationId | None = Field(
        default=None, description="Application id of the service principal, in place of `user`."
    )

    @model_validator(mode="after")
    def _consistent(self) -> RunAsSettings:
        if self.user is not None and self.service_principal is not None:
            raise rule("user or service_principal, not both")
        return self


class PermissionSettings(Section):
    """Who may see, run or manage the jobs, beside their owner."""

    groups: Mapping[Principal, AccessLevel] = Field(
        default={}, description="By name of the group, {name: level}: CAN_VIEW, CAN_MANAGE_RUN or CAN_MANAGE."
    )
    users: Mapping[Email, AccessLevel] = Field(default={}, description="By e-mail address.")
    service_principals: Mapping[ApplicationId, AccessLevel] = Field(default={}, description="By application id.")

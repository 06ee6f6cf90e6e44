"""Who asks, and what they may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.fakes.workspace.http.exchange import Answer, Refused, Request, answered, unknown_endpoint


@dataclass(slots=True)
class Users:
    """The user behind the token, and the rules about users.

    Attributes:
        me: the name of the user who asks.
        creators: who may create jobs; None = everybody.
        run_as: users and service principals that others may let jobs run as; None = every one.
        known: users, groups and service principals there are; None = every one.
    """

    me: str = "ann@example.org"
    creators: frozenset[str] | None = None
    run_as: frozenset[str] | None = None
    known: frozenset[str] | None = None

    def answer(self, request: Request) -> Answer:
        """Say who asks."""
        if (request.method, request.path) != ("GET", "/api/2.0/preview/scim/v2/Me"):
            raise unknown_endpoint(request)
        mail = {"type": "work", "value": self.me, "primary": True}
        return answered({"id": "7", "userName": self.me, "displayName": self.me, "active": True, "emails": [mail]})

    def check_creating(self) -> None:
        """Let pass who may create jobs.

        Raises:
            Refused: 403, for others.
        """
        if self.creators is not None and self.me not in self.creators:
            raise Refused(403, "PERMISSION_DENIED", f"User {self.me} is not authorized to create jobs.")

    def check_run_as(self, run_as: Mapping[str, str]) -> None:
        """Let pass who may let a job run as this; oneself always.

        Raises:
            Refused: 403, for others.
        """
        for name in run_as.values():
            self.check_known(name)
            if self.run_as is not None and name not in self.run_as | {self.me}:
                message = f"User {self.me} does not have permission to set run_as to {name}."
                raise Refused(403, "PERMISSION_DENIED", message)

    def check_known(self, name: str) -> None:
        """Let pass the name of somebody there is.

        Raises:
            Refused: 404, for others.
        """
        if self.known is not None and name not in self.known | {self.me}:
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST", f"Principal {name} does not exist.")

"""The workspace: its parts, who is let in, and what came in."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.fakes.workspace.catalog import Catalog
from tests.fakes.workspace.files import Files
from tests.fakes.workspace.http.exchange import Answer, Refused, Request, answered, unknown_endpoint
from tests.fakes.workspace.http.faults import Fault, Faults, When
from tests.fakes.workspace.jobs.jobs import Jobs
from tests.fakes.workspace.jobs.runs import Runs
from tests.fakes.workspace.oauth import PREFIX as OAUTH
from tests.fakes.workspace.oauth import OAuth
from tests.fakes.workspace.path_credentials import PathCredentials
from tests.fakes.workspace.permissions import Permissions
from tests.fakes.workspace.secrets import Secrets
from tests.fakes.workspace.tree import Tree
from tests.fakes.workspace.users import Users

# what a client asks before anything else, without a token
_ABOUT = "/.well-known/databricks-config"


@dataclass(slots=True)
class FakeWorkspace:
    """A workspace.

    Attributes:
        token: the bearer token that is let in.
        secrets: its secrets.
        path_credentials: what it gives out for paths of an external location.
        users: who asks, and what they may do.
        jobs: its jobs.
        permissions: who may do what with the jobs.
        runs: the runs of its jobs.
        catalog: its catalogs, schemas, tables and volumes.
        files: the files in its volumes.
        tree: its own folders and files.
        faults: which calls fail.
        url: where it answers.
        calls: every request that was let in, in order, with those that failed.
        oauth: who gets a token by OAuth.
        about: what it says of itself before a login; None = what a workspace says.
    """

    token: str = "fake-token"
    secrets: Secrets = field(default_factory=Secrets)
    path_credentials: PathCredentials = field(default_factory=PathCredentials)
    users: Users = field(default_factory=Users)
    jobs: Jobs = field(init=False)
    permissions: Permissions = field(init=False)
    runs: Runs = field(init=False)
    catalog: Catalog = field(init=False)
    files: Files = field(init=False)
    tree: Tree = field(init=False)
    faults: Faults = field(default_factory=Faults)
    url: str = ""
    calls: list[Request] = field(default_factory=list)
    about: Answer | None = None
    oauth: OAuth = field(default_factory=OAuth)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.jobs = Jobs(self.users)
        self.permissions = Permissions(self.jobs, self.users)
        self.runs = Runs(self.jobs)
        self.catalog = Catalog(self.users)
        self.files = Files(self.catalog)
        self.tree = Tree(self.users)

    @property
    def environ(self) -> dict[str, str]:
        """The environment by which the client finds the workspace."""
        return {"DATABRICKS_HOST": self.url, "DATABRICKS_TOKEN": self.token}

    def counted(self) -> Counter[str]:
        """How often each kind of call came in, such as `POST /api/2.2/jobs/create`."""
        return Counter(f"{call.method} {call.path}" for call in self.calls)

    def answer(self, request: Request, authorization: str | None) -> tuple[Answer, Fault | None]:
        """Return the answer, and the fault that spoils it; safe in many threads."""
        try:
            if request.path == _ABOUT:
                return self.about or answered({"oidc_endpoint": f"{self.url}/oidc", "workspace_id": "1"}), None
            if request.path.startswith(OAUTH):
                return self.oauth.answer(request, authorization, self.url, self.token), None
            self._let_in(authorization)
        except Refused as refused:
            return refused.answer, None
        with self._lock:
            self.calls.append(request)
            fault = self.faults.of(request)
            done = Answer() if fault and fault.when is When.BEFORE else self._done(request)
        return (fault.answered() if fault else None) or done, fault

    def _let_in(self, authorization: str | None) -> None:
        if not authorization:
            message = "Credential was not sent or was of an unsupported type for this API."
            raise Refused(401, "UNAUTHENTICATED", message)
        if authorization != f"Bearer {self.token}":
            raise Refused(403, "PERMISSION_DENIED", "Invalid access token.")

    def _done(self, request: Request) -> Answer:
        parts: dict[str, Callable[[Request], Answer]] = {
            "/api/2.0/secrets/": self.secrets.answer,
            "/api/2.2/jobs/run": self.runs.answer,
            "/api/2.2/jobs/": self.jobs.answer,
            "/api/2.0/permissions/jobs/": self.permissions.answer,
            "/api/2.1/unity-catalog/temporary-path-credentials": self.path_credentials.answer,
            "/api/2.1/unity-catalog/": self.catalog.answer,
            "/api/2.0/fs/": self.files.answer,
            "/api/2.0/workspace/": self.tree.answer,
            "/api/2.0/preview/scim/": self.users.answer,
        }
        try:
            for prefix, part in parts.items():
                if request.path.startswith(prefix):
                    return part(request)
            raise unknown_endpoint(request)
        except Refused as refused:
            return refused.answer
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # a body of another shape than the server knows
            return Refused(400, "MALFORMED_REQUEST", f"Could not parse request object: {error!r}").answer

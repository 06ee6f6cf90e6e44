"""The Permissions API, as far as it is about jobs."""

from __future__ import annotations

from dataclasses import dataclass

from tests.fakes.workspace.acl import Principal, entries, owner_of, shown
from tests.fakes.workspace.http.exchange import Answer, Refused, Request, answered, unknown_endpoint
from tests.fakes.workspace.jobs.jobs import Jobs, StoredJob
from tests.fakes.workspace.users import Users

_PREFIX = "/api/2.0/permissions/jobs/"


@dataclass(frozen=True, slots=True)
class Permissions:
    """What is done with the access control lists of jobs.

    Attributes:
        jobs: the jobs.
        users: who there is.
    """

    jobs: Jobs
    users: Users

    def answer(self, request: Request) -> Answer:
        """Show, set (PUT) or add to (PATCH) the list of a job."""
        number = request.path.removeprefix(_PREFIX)
        if not number.isdecimal():
            raise unknown_endpoint(request)
        job = self.jobs.existing(int(number))
        match request.method:
            case "GET":
                pass
            case "PUT":
                self._set(job, self._wanted(request))
            case "PATCH":
                self._set(job, {**job.acl, **self._wanted(request)})
            case _:
                raise unknown_endpoint(request)
        return answered({"object_id": f"/jobs/{number}", "object_type": "job", "access_control_list": shown(job.acl)})

    def _wanted(self, request: Request) -> dict[Principal, str]:
        wanted = entries(request.json.get("access_control_list", []))
        for _, name in wanted:
            self.users.check_known(name)
        return wanted

    def _set(self, job: StoredJob, acl: dict[Principal, str]) -> None:
        # a list without an owner is refused, not completed
        owner_of(acl)
        if owner_of(acl) != owner_of(job.acl) and self.users.me != owner_of(job.acl)[1]:
            raise Refused(403, "PERMISSION_DENIED", f"{self.users.me} cannot change the owner of the job.")
        job.acl = acl

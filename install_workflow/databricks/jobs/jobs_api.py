"""The jobs of one workspace: what is there, and the calls that change it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from demux.core.errors import ConcurrentChange
from demux.core.settings.databricks.access import AccessLevel, PrincipalKind
from install_workflow.databricks.api.client import WorkspaceConnection
from install_workflow.databricks.api.errors import Denied, Missing
from install_workflow.databricks.jobs.job import (
    OWNER_TAG,
    PART_TAG,
    ROOT_TAG,
    DeployedJob,
    ForeignJob,
    JobJson,
    Permission,
    Principal,
    root_tag,
)

_JOBS = "/api/2.2/jobs"
_PERMISSIONS = "/api/2.0/permissions/jobs"
_PAGED = ("tasks", "job_clusters", "environments", "parameters")
_OWNER = "IS_OWNER"


@dataclass(frozen=True, slots=True)
class DeploymentJobs:
    """The jobs of a deployment in the workspace.

    Attributes:
        jobs: the jobs with its tag, by id.
        foreign: other jobs with one of its names, by id.
        sharing: jobs of other deployments on its root, by id.
    """

    jobs: tuple[DeployedJob, ...]
    foreign: tuple[ForeignJob, ...]
    sharing: tuple[ForeignJob, ...] = ()


class Workspace:
    """The jobs of one workspace. Calls are tried again where that helps, and raise as `WorkspaceConnection.tried`."""

    def __init__(self, connection: WorkspaceConnection) -> None:
        self.connection = connection
        # who owns a job, as read last: a list of permissions without the owner is refused
        self._owners: dict[int, dict[str, str]] = {}

    def find(self, deployment: str, names: Collection[str], root: str | None = None) -> DeploymentJobs:
        """Return the deployment's jobs, those of others with one of these names, or on this root; changes nothing.

        One call for each 100 jobs of the workspace, and two or more for each job of ours.
        """
        ours, foreign, sharing = [], [], []
        tag = None if root is None else root_tag(root)
        for job_id, settings in self._listed():
            tags = settings.get("tags", {})
            owner = str(tags.get(OWNER_TAG, ""))
            other = ForeignJob(job_id, str(settings.get("name", "")), owner)
            if owner == deployment:
                ours.append(job_id)
            elif other.name in names:
                foreign.append(other)
            if tag is not None and owner not in {"", deployment} and tags.get(ROOT_TAG) == tag:
                sharing.append(other)
        jobs = (self._deployed(job_id) for job_id in sorted(ours))
        found = tuple(job for job in jobs if job is not None)
        return DeploymentJobs(found, *(tuple(sorted(each, key=lambda job: job.job_id)) for each in (foreign, sharing)))

    def others(self, deployment: str) -> tuple[JobJson, ...]:
        """Return the settings of the jobs of other deployments, by id.

        One call for each 100 jobs of the workspace, and one or more for each of these.
        """
        tagged = ((job_id, str(settings.get("tags", {}).get(OWNER_TAG, ""))) for job_id, settings in self._listed())
        ids = sorted(job_id for job_id, owner in tagged if owner not in {"", deployment})
        found = (self._deployed(job_id) for job_id in ids)
        return tuple(job.settings for job in found if job is not None)

    def settings_of(self, job_id: int) -> JobJson | None:
        """Return a job's settings as the server has them; None when it is gone."""
        try:
            return self._settings(job_id)
        except Missing:
            return None

    def create(
        self, settings: JobJson, permissions: Sequence[Permission], again: Callable[[], None] = lambda: None
    ) -> int:
        """Return the id of the new job, which has our tags; not safe to call twice.

        A create whose answer was lost is not repeated before the workspace was asked for a job with the same tags.

        Args:
            again: called before the create is repeated; that question may have taken long.
        """
        body = {**settings, "access_control_list": [_entry(permission) for permission in permissions]}
        tried = False

        def attempt() -> int:
            nonlocal tried
            if tried:
                known = self._with_tags(settings["tags"])
                if known is not None:
                    return known
                again()
            tried = True
            return int(self.connection.once("POST", f"{_JOBS}/create", body=body)["job_id"])

        return self.connection.retry(f"create the job {settings.get('name')}", attempt)

    def reset(self, job_id: int, settings: JobJson) -> None:
        """Replace all settings of a job; safe to call twice.

        Raises:
            ConcurrentChange: the job is gone.
        """
        body = {"job_id": job_id, "new_settings": settings}
        try:
            self.connection.ask("POST", f"{_JOBS}/reset", f"change the job {settings.get('name')}", body=body)
        except Denied:
            # permission is checked before existence
            if self._deployed(job_id) is not None:
                raise
            raise _vanished(job_id) from None

    def permit(self, job_id: int, permissions: Sequence[Permission]) -> None:
        """Replace all permissions of a job but the owner's; safe to call twice.

        Raises:
            ConcurrentChange: the job is gone.
        """
        if job_id not in self._owners:
            self._permissions(job_id)
        owner = self._owners.get(job_id)
        entries = [*([owner] if owner else []), *(_entry(permission) for permission in permissions)]
        path, doing = f"{_PERMISSIONS}/{job_id}", f"set who may use the job {job_id}"
        try:
            self.connection.ask("PUT", path, doing, body={"access_control_list": entries})
        except Missing:
            # or one of the principals is
            if self._deployed(job_id) is not None:
                raise
            raise _vanished(job_id) from None

    def delete(self, job_id: int) -> None:
        """Delete a job; one that is gone already is as good."""
        try:
            self.connection.ask("POST", f"{_JOBS}/delete", f"delete the job {job_id}", body={"job_id": job_id})
        except Missing:
            return

    def _listed(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield id and main settings of every job of the workspace, each once."""
        seen: set[int] = set()
        token = None
        while token != "":
            query = {"limit": 100, **({"page_token": token} if token else {})}
            jobs, token = self.connection.read(f"{_JOBS}/list", "list its jobs", _jobs_of, query)
            for job_id, settings in jobs:
                # a job made meanwhile moves others to the next page
                if job_id not in seen:
                    seen.add(job_id)
                    yield job_id, settings

    def _with_tags(self, tags: Mapping[str, str]) -> int | None:
        wanted = {name: tags[name] for name in (OWNER_TAG, PART_TAG)}
        found = (job for job, settings in self._listed() if wanted.items() <= settings.get("tags", {}).items())
        return min(found, default=None)

    def _deployed(self, job_id: int) -> DeployedJob | None:
        """Return a job with its permissions; None when it is gone."""
        try:
            settings = self._settings(job_id)
            permissions = self._permissions(job_id)
        except Missing:
            return None
        owner = _principal(self._owners.get(job_id, {}))
        return DeployedJob(job_id, str(settings.get("tags", {}).get(PART_TAG, "")), settings, permissions, owner)

    def _settings(self, job_id: int) -> dict[str, Any]:
        """Return all pages of a job's settings; later pages have only what the first has no room for."""
        doing = f"read the job {job_id}"
        page = self.connection.read(f"{_JOBS}/get", doing, _with_settings, {"job_id": job_id})
        settings = {**page["settings"]}
        # an answer may name the principal beside the settings only
        if name := page.get("run_as_user_name"):
            settings.setdefault("run_as", {"user_name" if "@" in name else "service_principal_name": name})
        while token := page.get("next_page_token"):
            query = {"job_id": job_id, "page_token": token}
            page = self.connection.read(f"{_JOBS}/get", doing, _with_settings, query)
            for field in _PAGED:
                if more := page["settings"].get(field):
                    settings[field] = [*settings.get(field, []), *more]
        return settings

    def _permissions(self, job_id: int) -> tuple[Permission, ...]:
        """Return the permissions on the job, without the owner's and inherited ones; keeps the owner."""
        direct = self.connection.read(f"{_PERMISSIONS}/{job_id}", f"read who may use the job {job_id}", _direct)
        for (kind, name), level in direct:
            if level == _OWNER:
                self._owners[job_id] = {kind.value: name, "permission_level": _OWNER}
        given = [Permission(kind, name, AccessLevel(level)) for (kind, name), level in direct if level != _OWNER]
        return tuple(sorted(given, key=lambda each: each.sort_key))


def _jobs_of(page: Mapping[str, Any]) -> tuple[list[tuple[int, dict[str, Any]]], str]:
    """Return ids and main settings of the jobs of a page, and the token of the next one."""
    jobs = [(int(job["job_id"]), {**job.get("settings", {})}) for job in page.get("jobs", [])]
    return jobs, str(page.get("next_page_token") or "")


def _with_settings(page: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(page["settings"], dict):
        raise TypeError("settings")
    return page


def _direct(answer: Mapping[str, Any]) -> list[tuple[Principal, str]]:
    """Return the level of each principal, without inherited ones."""
    return [
        (principal, str(permission["permission_level"]))
        for entry in answer.get("access_control_list", [])
        if (principal := _principal(entry))
        for permission in entry.get("all_permissions", [])
        if not permission.get("inherited")
    ]


def _principal(entry: Mapping[str, Any]) -> Principal | None:
    return next(((kind, str(entry[kind.value])) for kind in PrincipalKind if entry.get(kind.value)), None)


def _entry(permission: Permission) -> dict[str, str]:
    return {permission.kind.value: permission.principal, "permission_level": permission.level.value}


def _vanished(job_id: int) -> ConcurrentChange:
    return ConcurrentChange(
        f"The job {job_id} was deleted since the plan was made.", "Run the same command again.", job_id=job_id
    )

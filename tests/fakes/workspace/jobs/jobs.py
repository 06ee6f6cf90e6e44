"""The jobs of the workspace: what is kept, changed and given back."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.workspace.acl import OWNER, Principal, entries, owner_of
from tests.fakes.workspace.http.exchange import Answer, Refused, Request, answered, unknown_endpoint
from tests.fakes.workspace.jobs.cluster_rules import Compute
from tests.fakes.workspace.jobs.job_defaults import kept
from tests.fakes.workspace.jobs.job_rules import check
from tests.fakes.workspace.users import Users

PAGE = 100
_PREFIX = "/api/2.2/jobs/"
_PAGED = ("tasks", "job_clusters", "environments", "parameters")
# what `jobs/list` gives only with `expand_tasks`
_EXPANDED = ("tasks", "job_clusters", "environments")
# the lists that `jobs/update` merges, and by what
_MERGED = {"tasks": "task_key", "job_clusters": "job_cluster_key"}
_FIRST_TIME_MS = 1_700_000_000_000


@dataclass(slots=True)
class StoredJob:
    """A job.

    Attributes:
        job_id: never given twice.
        settings: as `jobs/get` gives them back.
        creator: the user who made it.
        acl: who may do what with it, the owner included.
        created_ms: since 1970.
    """

    job_id: int
    settings: dict[str, Any]
    creator: str
    acl: dict[Principal, str]
    created_ms: int

    @property
    def runs_as(self) -> str:
        """The user or service principal that it runs as."""
        named = self.settings.get("run_as", {})
        return str(next(iter(named.values()), None) or owner_of(self.acl)[1])


@dataclass(slots=True)
class Jobs:
    """All jobs.

    Attributes:
        users: who asks, and what they may do.
        held: the jobs by id.
        compute: what clusters may be made of.
        next_id: the id of the next job.
    """

    users: Users
    held: dict[int, StoredJob] = field(default_factory=dict)
    compute: Compute = field(default_factory=Compute)
    next_id: int = 1001

    def answer(self, request: Request) -> Answer:
        """Do what the Jobs API 2.2 does at this path."""
        does: dict[tuple[str, str], Callable[[Request], Mapping[str, Any]]] = {
            ("POST", "create"): self._create,
            ("POST", "reset"): self._reset,
            ("POST", "update"): self._update,
            ("POST", "delete"): self._delete,
            ("GET", "get"): self._get,
            ("GET", "list"): self._list,
        }
        do = does.get((request.method, request.path.removeprefix(_PREFIX)))
        if do is None:
            raise unknown_endpoint(request)
        return answered(do(request))

    def make(self, settings: Mapping[str, Any], user: str = "") -> StoredJob:
        """Keep a new job, which somebody made by hand if a user is named."""
        wanted = {name: value for name, value in settings.items() if name != "access_control_list"}
        check(wanted, self.held, self.compute)
        self.users.check_run_as(wanted.get("run_as", {}))
        owner = user or self.users.me
        acl = entries(settings.get("access_control_list", []))
        if OWNER not in acl.values():
            acl = {("user_name", owner): OWNER, **acl}
        job = StoredJob(self.next_id, kept(wanted, self.compute), owner, acl, _FIRST_TIME_MS + 1000 * self.next_id)
        self.held[job.job_id] = job
        self.next_id += 1
        return job

    def named(self, name: str) -> list[StoredJob]:
        """The jobs of exactly this name, the oldest first."""
        return [job for job in self.held.values() if job.settings["name"] == name]

    def existing(self, job_id: object) -> StoredJob:
        """The job.

        Raises:
            Refused: 404, when there is none.
        """
        if not isinstance(job_id, int) or job_id not in self.held:
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST", f"Job {job_id} does not exist.")
        return self.held[job_id]

    def _create(self, request: Request) -> Mapping[str, Any]:
        self.users.check_creating()
        return {"job_id": self.make(request.json).job_id}

    def _reset(self, request: Request) -> Mapping[str, Any]:
        body = request.json
        job = self._changeable(body)
        wanted = body.get("new_settings", {})
        # without run_as the job goes on running as before
        if "run_as" in job.settings:
            wanted = {"run_as": job.settings["run_as"], **wanted}
        return self._replace(job, wanted)

    def _update(self, request: Request) -> Mapping[str, Any]:
        body = request.json
        job = self._changeable(body)
        merged = _without(job.settings, body.get("fields_to_remove", []))
        for name, value in body.get("new_settings", {}).items():
            merged[name] = _merged(merged.get(name, []), value, _MERGED[name]) if name in _MERGED else value
        return self._replace(job, merged)

    def _replace(self, job: StoredJob, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        check(wanted, self.held, self.compute)
        self.users.check_run_as(wanted.get("run_as", {}))
        job.settings = kept(wanted, self.compute)
        return {}

    def _changeable(self, body: Mapping[str, Any]) -> StoredJob:
        """The job to be changed; permission is checked before existence."""
        job = self.held.get(body.get("job_id", 0))
        if job is None:
            message = f"User {self.users.me} does not have Manage permissions on job {body.get('job_id')}"
            raise Refused(403, "PERMISSION_DENIED", message)
        return job

    def _delete(self, request: Request) -> Mapping[str, Any]:
        del self.held[self.existing(request.json.get("job_id")).job_id]
        return {}

    def _get(self, request: Request) -> Mapping[str, Any]:
        job = self.existing(request.number("job_id"))
        start = _position(request.query.get("page_token"))
        settings = dict(job.settings)
        for name in _PAGED:
            page = settings.pop(name, [])[start : start + PAGE]
            if page:
                settings[name] = page
        more = any(len(job.settings.get(name, [])) > start + PAGE for name in _PAGED)
        rest = {"has_more": True, "next_page_token": _token(start + PAGE)} if more else {}
        return {**_head(job), "run_as_user_name": job.runs_as, "settings": settings, **rest}

    def _list(self, request: Request) -> Mapping[str, Any]:
        limit = request.number("limit", 20)
        if not 1 <= limit <= 100:
            raise Refused(400, "INVALID_PARAMETER_VALUE", f"limit must be between 1 and 100, not {limit}")
        name = request.query.get("name", "").lower()
        before = _position(request.query.get("page_token")) or self.next_id
        found = [
            job
            for job in sorted(self.held.values(), key=lambda each: -each.job_id)
            if job.job_id < before and name in ("", str(job.settings["name"]).lower())
        ]
        shown = [_listed(job, request.query.get("expand_tasks") == "true") for job in found[:limit]]
        more = len(found) > limit
        rest = {"next_page_token": _token(found[limit - 1].job_id)} if more else {}
        return {**({"jobs": shown} if shown else {}), "has_more": more, **rest}


def _head(job: StoredJob) -> dict[str, Any]:
    return {"job_id": job.job_id, "creator_user_name": job.creator, "created_time": job.created_ms}


def _listed(job: StoredJob, expanded: bool) -> dict[str, Any]:
    settings = {name: value for name, value in job.settings.items() if expanded or name not in _EXPANDED}
    lists = {name: settings[name][:PAGE] for name in _PAGED if name in settings}
    more = {"has_more": True} if any(len(settings[name]) > PAGE for name in lists) else {}
    return {**_head(job), "settings": {**settings, **lists}, **more}


def _without(settings: Mapping[str, Any], fields: list[str]) -> dict[str, Any]:
    """The settings without some fields, such as `schedule` or `tasks/bronze`."""
    result = dict(settings)
    for text in fields:
        name, _, key = text.partition("/")
        if key and name in _MERGED:
            result[name] = [each for each in result.get(name, []) if each.get(_MERGED[name]) != key]
        else:
            result.pop(name, None)
    return result


def _merged(old: list[dict[str, Any]], new: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    return list({each.get(key): each for each in [*old, *new]}.values())


def _token(position: int) -> str:
    return base64.urlsafe_b64encode(str(position).encode()).decode()


def _position(token: str | None) -> int:
    try:
        return int(base64.urlsafe_b64decode(token)) if token else 0
    except (ValueError, binascii.Error):
        raise Refused(400, "INVALID_PARAMETER_VALUE", f"Invalid page token: {token}") from None

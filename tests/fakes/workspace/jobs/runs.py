"""The runs of jobs: each is over as soon as it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.workspace.http.exchange import Answer, Refused, Request, answered, unknown_endpoint
from tests.fakes.workspace.jobs.jobs import Jobs


@dataclass(slots=True)
class Runs:
    """All runs.

    Attributes:
        jobs: the jobs.
        held: the runs by id, the oldest first, as `runs/get` gives them back.
        result: how runs end, such as `SUCCESS` or `FAILED`.
        next_id: the id of the next run.
    """

    jobs: Jobs
    held: dict[int, dict[str, Any]] = field(default_factory=dict)
    result: str = "SUCCESS"
    next_id: int = 500_001
    _tokens: dict[str, int] = field(default_factory=dict)

    def answer(self, request: Request) -> Answer:
        """Start, show or list runs."""
        match request.method, request.path.removeprefix("/api/2.2/jobs/"):
            case "POST", "run-now":
                return answered(self._run_now(request.json))
            case "GET", "runs/get":
                return answered(self._get(request.number("run_id")))
            case "GET", "runs/list":
                return answered(self._list(request))
        raise unknown_endpoint(request)

    def _run_now(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        job = self.jobs.existing(body.get("job_id"))
        token = body.get("idempotency_token", "")
        if token in self._tokens:
            return {"run_id": self._tokens[token]}
        run_id, self.next_id = self.next_id, self.next_id + 1
        if token:
            self._tokens[token] = run_id
        state = {"life_cycle_state": "TERMINATED", "result_state": self.result, "state_message": ""}
        self.held[run_id] = {
            "run_id": run_id,
            "job_id": job.job_id,
            "run_name": job.settings["name"],
            "creator_user_name": self.jobs.users.me,
            "state": state,
            "tasks": [{"task_key": task["task_key"], "state": state} for task in job.settings.get("tasks", [])],
        }
        return {"run_id": run_id, "number_in_job": run_id}

    def _get(self, run_id: int) -> Mapping[str, Any]:
        if run_id not in self.held:
            raise Refused(400, "INVALID_PARAMETER_VALUE", f"Run {run_id} does not exist.")
        return self.held[run_id]

    def _list(self, request: Request) -> Mapping[str, Any]:
        wanted = request.number("job_id", 0)
        found = [run for run in reversed(self.held.values()) if wanted in (0, run["job_id"])]
        start, limit = request.number("page_token", 0), request.number("limit", 20)
        shown = [{name: run[name] for name in run if name != "tasks"} for run in found[start : start + limit]]
        if start + limit >= len(found):
            return {"runs": shown} if shown else {}
        return {"runs": shown, "has_more": True, "next_page_token": str(start + limit)}

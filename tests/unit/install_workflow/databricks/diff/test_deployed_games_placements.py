"""Where the jobs have each game, as the record of the deployment says it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from demux.core.control.deployment_record import GamePlacement, RecordedGame
from demux.core.names import names_of
from install_workflow.databricks.apply.apply_jobs import apply
from install_workflow.databricks.diff.changes import compare
from install_workflow.databricks.diff.deployed_games import deployed_places, planned_places, record_placements
from install_workflow.databricks.jobs.job import DeployedJob
from tests.support.databricks.jobs import job, task

NOW = datetime(2025, 3, 30, 12, 3, 4, tzinfo=timezone.utc)
ONE = job("001", {"cluster_001": ["chess", "将棋"]})
NAME = str(ONE.settings["name"])


def of_tasks(job_id: int, *tasks: dict[str, Any]) -> DeployedJob:
    return DeployedJob(job_id, "001", {"name": NAME, "tasks": list(tasks)})


def test_each_game_is_where_its_task_is_by_key() -> None:
    key = names_of("将棋").key
    assert deployed_places([DeployedJob(11, "001", ONE.settings)], ()) == (
        GamePlacement("chess", "chess", NAME, 11, "deserialize_chess", "cluster_001"),
        GamePlacement(key, "将棋", NAME, 11, "deserialize_将棋", "cluster_001"),
    )


def test_one_task_may_have_many_games_some_told_by_their_key() -> None:
    hostile = "{{job.id}}"
    key = names_of(hostile).key
    parameters = ["deserialize", "--game=chess", f"--game-key={key}", "--game-key=../x"]
    found = deployed_places([of_tasks(11, task("deserialize_big", parameters, "big"))], [hostile])
    assert [(each.key, each.game, each.task) for each in found] == [
        ("chess", "chess", "deserialize_big"),
        (key, hostile, "deserialize_big"),
    ]
    unknown = deployed_places([of_tasks(11, task("deserialize_big", parameters, "big"))], ())
    assert [each.game for each in unknown] == ["chess", None]


def test_of_two_jobs_with_a_game_the_older_one_counts_and_a_task_without_games_does_not() -> None:
    by_hand = {"task_key": "deserialize_go", "python_wheel_task": {"named_parameters": {"game": "go"}}}
    report = {"task_key": "deserialize_report", "notebook_task": {"notebook_path": "/x"}}
    found = deployed_places([DeployedJob(12, "001", ONE.settings), of_tasks(11, by_hand, report)], ())
    assert [(each.key, each.job_id, each.cluster) for each in found] == [
        ("chess", 12, "cluster_001"),
        (names_of("将棋").key, 12, "cluster_001"),
        ("go", 11, None),
    ]
    doubled = [DeployedJob(number, "001", ONE.settings) for number in (13, 12)]
    assert {each.job_id for each in deployed_places(doubled, ())} == {12}


class Made:
    """Makes jobs, and remembers nothing."""

    def create(self, *_: object) -> int:
        return 21

    def reset(self, *_: object) -> None: ...

    def permit(self, *_: object) -> None: ...

    def delete(self, *_: object) -> None: ...


def test_a_plan_that_was_applied_says_the_same_as_the_jobs_do() -> None:
    plan = compare([ONE], [])
    assert planned_places(plan, apply(Made(), plan), ()) == deployed_places([DeployedJob(21, "001", ONE.settings)], ())


def test_what_did_not_change_keeps_its_plan_and_time() -> None:
    places = deployed_places([DeployedJob(11, "001", ONE.settings)], ())
    before = [RecordedGame(places[0], "first", NOW)]
    later = NOW + timedelta(days=1)
    assert record_placements(places, before, "second", later) == (before[0], RecordedGame(places[1], "second", later))
    moved = deployed_places([DeployedJob(12, "001", ONE.settings)], ())
    assert {each.plan_id for each in record_placements(moved, before, "second", later)} == {"second"}

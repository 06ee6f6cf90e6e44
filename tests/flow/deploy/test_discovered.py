"""`demux apply --discovered`: a job's own last task finds the games of bronze, and what it tells tasks decodes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from demux.core.control.games_and_rounds import Control
from demux.core.names import names_of
from demux.core.reports import GameReport
from demux.pipeline.round import record_of
from demux.pipeline.task_pool import TaskEnd
from install_workflow.planning.plan import Task
from tests.fakes.registry_server import FakeRegistry
from tests.fakes.registry_server import serving as serving_registry
from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.server import serving
from tests.support.flow.deployment import Deployment
from tests.support.flow.process import Command

REPLACED = ("{{x}}", "${y}")
HOSTILE = ('it\'s "q" `b`', "将棋", "🎲 dice", "--help", "a/../b", "'; DROP TABLE x")
NEW_LINE = "new\nline"


@pytest.fixture
def deployment(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    """A deployment that is not installed yet; this process has its environment, and works in its folder."""
    laptop, lake = tmp_path / "laptop", tmp_path / "lake"
    laptop.mkdir()
    lake.mkdir()
    monkeypatch.chdir(laptop)
    with serving_registry(FakeRegistry()) as registry, serving(FakeWorkspace()) as workspace:
        workspace.catalog.add("volume", "main.ops.wheels")
        made = Deployment(laptop, lake, workspace, registry)
        for name, value in made.environ.items():
            monkeypatch.setenv(name, value)
        made.mount(spark)
        made.wish()
        yield made


@pytest.fixture
def installed(deployment: Deployment, command: Command) -> Deployment:
    """The deployment with its job, three games in bronze, and none of them in the job."""
    deployment.send("chess", "go", "ludo")
    assert deployment.install(command).code == 0
    assert command(*deployment.parameters("bronze")).code == 0
    assert deployment.games_in_tasks() == set()
    return deployment


def discover(deployment: Deployment, command: Command) -> str:
    """What the job's last task prints when it runs in this process."""
    said = command(*deployment.parameters("apply_discovered"))
    assert said.code == 0, said.err
    return said.out


def settings_of(deployment: Deployment) -> list[Any]:
    return [job.settings for job in deployment.workspace.jobs.held.values()]


@pytest.mark.slow
def test_a_job_finds_its_games_by_itself_and_decodes_them(deployment: Deployment, command: Command) -> None:
    deployment.wish(run={"engine": "fleet", "retry_wait_s": 0})
    games = ("chess", *HOSTILE, *REPLACED)
    deployment.send(*games, NEW_LINE)
    assert deployment.install(command).code == 0
    assert command(*deployment.parameters("bronze")).code == 0
    assert discover(deployment, command).endswith("applied\n")
    by_key = (*REPLACED, *(game for game in HOSTILE if not game.isascii()))
    by_name = {"chess", *HOSTILE} - {*by_key}
    assert deployment.games_in_tasks() == {*by_name, *(f"key:{names_of(game).key}" for game in by_key)}
    said = deployment.run_alone("deserialize_cluster_001")
    assert said.code == 0, said.err
    decoded = {game: sorted((row["name"], row["score"]) for row in deployment.silver(game)) for game in games}
    assert decoded == {game: [(game, 0), (game, 1)] for game in games}
    assert [row["cause"] for row in deployment.quarantine()] == ["INVALID_GAME_NAME"] * 2
    before = settings_of(deployment)
    assert "applied" not in discover(deployment, command)
    assert settings_of(deployment) == before


def test_a_deployment_changes_its_engine_and_its_compute_and_neither_loses_nor_doubles_a_row(
    deployment: Deployment, command: Command
) -> None:
    games = ("chess", "go")
    for number, engine in enumerate(("stream", "fleet", "stream")):
        deployment.wish(run={"engine": engine, "retry_wait_s": 0}, games={"allow": list(games)})
        said = deployment.install(command)
        # each task has another place, that of the games and the one that looks for games another engine, too
        compute = {"stream": "dedicated becomes serverless", "fleet": "serverless becomes dedicated"}[engine]
        assert f"becomes {engine}: compute {compute}: 3 tasks changed" in said.out or not number
        deployment.send(*games)
        for key in ("bronze", "deserialize_cluster_001"):
            assert command(*deployment.parameters(key)).code == 0, engine
        scores = {game: sorted(row["score"] for row in deployment.silver(game)) for game in games}
        assert scores == dict.fromkeys(games, sorted([0, 1] * (number + 1)))
    assert deployment.quarantine() == []


def test_a_game_that_comes_later_is_added_and_the_others_stay(installed: Deployment, command: Command) -> None:
    assert discover(installed, command).endswith("applied\n")
    assert installed.games_in_tasks() == {"chess", "go", "ludo"}
    installed.send("halma")
    assert command(*installed.parameters("bronze")).code == 0
    text = discover(installed, command)
    assert "~ update Game_Protobufs_wrapper_prod (job 1001)" in text
    assert installed.games_in_tasks() == {"chess", "go", "halma", "ludo"}
    # the games' job, and the one that maintains the tables
    assert list(installed.workspace.jobs.held) == [1001, 1002]
    said = command(*installed.parameters("maintain"))
    assert (said.code, "nothing was changed" in said.out) == (0, False), said.err


def test_those_that_the_allow_list_does_not_name_wait(installed: Deployment, command: Command) -> None:
    installed.wish(games={"policy": "allow-list", "allow": ["go"]})
    assert installed.install(command).code == 0
    text = discover(installed, command)
    assert "! waits  game chess: games.policy is allow-list and games.allow does not name it" in text
    assert installed.games_in_tasks() == {"go"}


def test_no_more_appear_than_the_limit(installed: Deployment, command: Command) -> None:
    installed.wish(games={"limit": 2})
    assert installed.install(command).code == 0
    assert "! waits  game ludo: games.limit is 2 and as many games are running" in discover(installed, command)
    assert installed.games_in_tasks() == {"chess", "go"}
    assert "applied" not in discover(installed, command)


def test_games_leave_a_heavy_cluster_once_and_not_again_before_a_task_has_ended(
    deployment: Deployment, command: Command, spark: SparkSession
) -> None:
    games = [f"game_{letter}" for letter in "abcdefgh"]
    deployment.wish(run={"streams_per_cluster": 4})
    deployment.send(*games)
    assert deployment.install(command).code == 0
    assert command(*deployment.parameters("bronze")).code == 0
    discover(deployment, command)
    before = deployment.clusters()
    ended = (
        TaskEnd(Task(game, "", cluster), GameReport(game, 2, 2, 0, ()), None, 10.0 if cluster == "cluster_001" else 0.1)
        for game, cluster in before.items()
    )
    control = Control(spark, deployment.layout)
    control.close_round([record_of(end, "round") for end in ended], None)
    text = discover(deployment, command)
    assert "to cluster_002: moved from cluster_001, which carries 40.0 seconds a round" in text
    after = deployment.clusters()
    assert len([game for game in games if before[game] != after[game]]) == 2
    assert "applied" not in discover(deployment, command)
    assert deployment.clusters() == after


def test_grants_for_tables_that_have_come_are_made_by_the_task_too(
    installed: Deployment, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Spark has no such catalog here, and goes by path
    monkeypatch.setattr("demux.core.root.layout.names_of_tables", lambda settings: None)
    installed.wish(tables={"catalog": "main"}, grants={"patterns": {"*": ["players"]}})
    assert installed.install(command).code == 0
    assert "! waits   game chess: there is no catalog main.silver" not in discover(installed, command)
    for game in ("chess", "go", "ludo"):
        installed.workspace.catalog.add("table", f"main.silver.{game}")
    assert "+ SELECT on table main.silver.chess to players: done" in discover(installed, command)
    assert installed.workspace.catalog.may_select("main.silver.ludo", ["players"])
    assert "applied" not in discover(installed, command)


def test_a_local_round_knows_the_games_of_the_registry_and_has_nothing_to_do_for_those_without_rows(
    deployment: Deployment, command: Command
) -> None:
    deployment.send("chess")
    deployment.registry.put("go-value", {"schemaType": "PROTOBUF", "schema": 'syntax = "proto3"; message M {}'})
    deployment.wish(databricks={"name": None}, games={"subjects": "(?P<game>.+)-value"})
    planned = command("plan").out
    assert "+ create deserialize_go on cluster_001 (game go): new game in the registry" in planned
    said = command("run")
    assert said.code == 0, said.err
    assert [row["score"] for row in deployment.silver("chess")] == [0, 1]
    assert not (deployment.lake / "root" / "silver" / "go").exists()
    assert "0 to create, 0 to update, 0 to delete, 2 to keep" in command("plan").out
    deployment.send("go")
    assert command("run").code == 0
    assert [row["score"] for row in deployment.silver("go")] == [0, 1]


def test_a_name_that_no_game_can_have_is_shown_by_what_works_on_this_machine_and_kept_nowhere(
    deployment: Deployment, command: Command, spark: SparkSession
) -> None:
    deployment.send("chess")
    deployment.registry.put("a\nb-value", {"schemaType": "PROTOBUF", "schema": 'syntax = "proto3"; message M {}'})
    deployment.wish(databricks={"name": None}, games={"subjects": "(?s)(?P<game>.+)-value"})
    for words in (("plan",), ("apply",), ("run",)):
        said = command(*words)
        assert said.code == 0, said.err
        assert "! waits  game a\\u000ab: its subject names what no game can be called." in said.out
    assert set(Control(spark, deployment.layout).known_games()) == {"chess"}


def test_a_local_round_goes_on_without_the_registry_and_says_so(deployment: Deployment, command: Command) -> None:
    deployment.send("chess")
    deployment.wish(databricks={"name": None}, games={"subjects": "(?P<game>.+)-value"})
    assert command("run").code == 0
    deployment.send("chess")
    with serving_registry(FakeRegistry()) as gone:
        url = gone.url
    said = command("run", "--set", f"registry.url={url}")
    assert said.code == 0, said.err
    assert f"Games that only the registry has are left out: The registry at {url} gave no usable answer" in said.err
    assert len(deployment.silver("chess")) == 4

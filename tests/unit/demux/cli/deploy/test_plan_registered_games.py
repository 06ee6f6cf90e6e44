"""Games that the registry names, in the plan of a workspace: without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demux.core.errors import RegistryUnavailable
from demux.core.names import names_of
from tests.fakes.registry_server import FakeRegistry, serving
from tests.fakes.workspace.fake import FakeWorkspace
from tests.support.databricks.deployments import Demux, write_settings

SUBJECTS = "(?s)(?P<game>.+)-value"


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with serving(FakeRegistry()) as fake:
        put(fake, "chess", "将棋")
        yield fake


def put(registry: FakeRegistry, *games: str) -> None:
    for game in games:
        registry.put(f"{game}-value", {"schemaType": "PROTOBUF", "schema": 'syntax = "proto3"; message M {}'})


def wish(folder: Path, registry: FakeRegistry, **games: Any) -> None:
    settings = {"allow": ["go"], "subjects": SUBJECTS, **games}
    write_settings(folder, games=settings, registry={"url": registry.url, "retries": 0})


def games(fake: FakeWorkspace) -> set[str]:
    """What the tasks of the job are told of games."""
    parameters = (task["python_wheel_task"]["parameters"] for task in fake.jobs.held[1001].settings["tasks"])
    return {each for words in parameters for each in words if each.startswith("--game")}


def test_they_get_a_task_before_their_first_record(
    here: Path, fake: FakeWorkspace, registry: FakeRegistry, demux: Demux
) -> None:
    wish(here, registry)
    assert "(game 将棋) on cluster_001 added: new game" in demux("plan")
    demux("apply")
    assert games(fake) == {"--game=go", "--game=chess", f"--game-key={names_of('将棋').key}"}
    assert "1 to keep" in demux("apply")


def test_a_game_whose_subject_is_deleted_goes_on_where_it_runs(
    here: Path, fake: FakeWorkspace, registry: FakeRegistry, demux: Demux
) -> None:
    wish(here, registry)
    demux("apply")
    registry.lose("chess-value")
    assert "1 to keep" in demux("apply")
    assert "--game=chess" in games(fake)


def test_the_policy_decides_about_them(here: Path, fake: FakeWorkspace, registry: FakeRegistry, demux: Demux) -> None:
    wish(here, registry, limit=1)
    demux("apply")
    assert games(fake) == {"--game=go", "--game=chess"}
    wish(here, registry, policy="allow-list")
    text = demux("plan", "--root", "/Volumes/main/demux/other", "--set", "databricks.name=other")
    assert "! waits  game chess: games.policy is allow-list and games.allow does not name it" in text
    assert "task deserialize_chess" not in text


def test_a_name_that_no_game_can_have_is_shown_and_has_no_task(
    here: Path, fake: FakeWorkspace, registry: FakeRegistry, demux: Demux
) -> None:
    put(registry, "a\nb", "{{x}}", "${y}")
    wish(here, registry)
    said = "! waits  game a\\u000ab: its subject names what no game can be called. The game name has a control "
    assert said in demux("apply")
    assert len(games(fake)) == 5
    assert len([each for each in games(fake) if each.startswith("--game-key=")]) == 3
    assert "1 to keep" in demux("apply")


def test_a_registry_that_is_down_is_one_sentence_and_nothing_is_changed(
    here: Path, fake: FakeWorkspace, demux: Demux
) -> None:
    with serving(FakeRegistry()) as gone:
        wish(here, gone)
    with pytest.raises(RegistryUnavailable, match=f"The registry at {gone.url} gave no usable answer"):
        demux("apply")
    assert fake.jobs.held == {}

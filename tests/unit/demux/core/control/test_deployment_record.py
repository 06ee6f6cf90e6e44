"""The record of a deployment as text, and what its files are called."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.control.deployment_record import (
    DeploymentRecord,
    GamePlacement,
    InstallerClaim,
    RecordedGame,
    deployment_format,
    deployment_in,
    record_folder,
)
from demux.core.control.record_format import file_of, version_in
from demux.core.errors import PlanRefused

NOW = datetime(2025, 3, 30, 1, 59, 59, 123_456, tzinfo=timezone.utc)
CHESS = RecordedGame(
    GamePlacement("chess", "chess", "Game_Protobufs_wrapper_prod", 11, "deserialize_chess", "c"), "27af", NOW
)
CLAIM = InstallerClaim("ann@laptop", "12-af", "27af", NOW, NOW + timedelta(minutes=15))
RECORD = DeploymentRecord((CHESS,), CLAIM, "5ab0", {11: {"parent_path": "/Users/ann"}}, ("/Workspace/a",))

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
times = st.datetimes(timezones=st.just(timezone.utc))
places = st.builds(GamePlacement, text, st.none() | text, text, st.integers(0, 2**63), text, st.none() | text)
records = st.builds(
    DeploymentRecord,
    st.lists(st.builds(RecordedGame, places, text, times)).map(tuple),
    st.none() | st.builds(InstallerClaim, text, text, text, times, times),
    text,
    st.dictionaries(st.integers(1, 2**63), st.dictionaries(text, text | st.dictionaries(text, st.integers()))),
    st.lists(text).map(tuple),
)


@pytest.mark.thorough
@given(records)
def test_a_record_is_read_as_it_was_written(record: DeploymentRecord) -> None:
    assert deployment_format("prod").from_text(deployment_format("prod").to_text(record), "x") == record


def test_a_record_is_readable_text() -> None:
    assert json.loads(deployment_format("prod").to_text(RECORD)) == {
        "version": 2,
        "deployment": "prod",
        "record_id": "5ab0",
        "claim": {
            "by": "ann@laptop",
            "process": "12-af",
            "plan_id": "27af",
            "at": "2025-03-30T01:59:59.123456Z",
            "until": "2025-03-30T02:14:59.123456Z",
        },
        "games": [
            {
                "place": {
                    "key": "chess",
                    "game": "chess",
                    "job": "Game_Protobufs_wrapper_prod",
                    "job_id": 11,
                    "task": "deserialize_chess",
                    "cluster": "c",
                },
                "plan_id": "27af",
                "since": "2025-03-30T01:59:59.123456Z",
            }
        ],
        "made": ["/Workspace/a"],
        "filled": {"11": {"parent_path": "/Users/ann"}},
    }
    name = replace(CHESS, place=replace(CHESS.place, game="将棋"))
    assert "将棋" in deployment_format("prod").to_text(DeploymentRecord((name,)))


def edited(**fields: object) -> str:
    return json.dumps({**json.loads(deployment_format("prod").to_text(RECORD)), **fields})


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        deployment_format("dev").to_text(RECORD),
        edited(version=1),
        edited(games=[{}]),
        edited(games=None),
        edited(claim={"by": "x"}),
        deployment_format("prod").to_text(RECORD).replace('Z"', '"'),
    ],
)
def test_what_is_no_record_is_refused_with_what_to_do(wrong: str) -> None:
    with pytest.raises(PlanRefused, match=r"The record of the deployment, /x/1\.json, cannot be used") as refused:
        deployment_format("prod").from_text(wrong, "/x/1.json")
    assert "remove that file" in refused.value.remedy


def test_files_are_named_by_their_version_and_others_are_none() -> None:
    assert file_of(12) == "00000012.json"
    assert [version_in(file_of(number)) for number in (1, 99_999_999, 100_000_000)] == [1, 99_999_999, 100_000_000]
    assert [version_in(name) for name in ("1.json", "00000001.json.tmp", "notes.txt", "٠٠٠٠٠٠٠١.json")] == [None] * 4


def test_a_folder_says_whose_record_it_has() -> None:
    folder = record_folder("/Volumes/main/ops/wheels/", "prod")
    assert folder == "/Volumes/main/ops/wheels/deployment.prod"
    assert deployment_in(folder) == deployment_in(f"{folder}/") == "prod"

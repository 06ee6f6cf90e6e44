"""Which folders `destroy` removes from a root, and which never."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.errors import SettingsInvalid
from demux.core.root.layout import Layout
from demux.core.settings.settings import Settings
from install_workflow.destroy.plan import (
    Folder,
    RootPart,
    as_text,
    folders,
    from_text,
    options_of,
    part_of,
    require_apart,
    to_text,
)

ROOT = Layout("/data/root")
HOSTILE = ["../../etc", "a'b; drop table x", "Chess", "将棋", "..", "control"]


def paths(games: list[str], *parts: RootPart) -> list[str]:
    return [folder.path.removeprefix("/data/root/") for folder in folders(ROOT, games, parts)]


def test_checkpoints_are_those_of_the_streams() -> None:
    assert paths(["go", "chess"], RootPart.CHECKPOINTS) == [
        "checkpoints/silver/chess",
        "checkpoints/silver/go",
        "checkpoints/bronze",
    ]


def test_tables_are_those_of_the_games_and_of_the_layout() -> None:
    assert paths(["go", "chess"], RootPart.TABLES) == [
        "silver/chess",
        "silver/go",
        "quarantine",
        "bronze",
        "control/approvals",
        "control/deployments",
        "control/dropped",
        "control/removed",
        "control/forget",
        "control/backfills",
        "control/gaps",
        "control/topics",
        "control/schemas",
        "control/rounds",
        "control/games",
    ]


def test_nothing_goes_that_nobody_asked_for_and_checkpoints_go_first() -> None:
    assert paths(["chess"]) == []
    both = paths(["chess"], RootPart.TABLES, RootPart.CHECKPOINTS)
    assert both == paths(["chess"], RootPart.CHECKPOINTS) + paths(["chess"], RootPart.TABLES)


@given(st.lists(st.sampled_from(HOSTILE) | st.text(min_size=1, max_size=20)), st.sampled_from(["/r", "s3://b/r"]))
def test_whatever_a_game_is_called_only_the_layouts_own_folders_go(games: list[str], root: str) -> None:
    layout = Layout(root)
    for folder in folders(layout, games, RootPart):
        assert folder.path.startswith(f"{root}/")
        assert ".." not in folder.path.split("/")
        assert part_of(layout, folder.path) is folder.part
        assert folder.path not in {f"{root}/source", f"{root}/registry", f"{root}/logs", root}


@pytest.mark.parametrize(
    "path",
    [
        "/data/root",
        "/data/root/",
        "/data/root/source",
        "/data/root/registry",
        "/data/root/silver",
        "/data/root/silver/../source",
        "/data/root/silver/Chess",
        "/data/root/silver/chess/x",
        "/data/root/silver/..",
        "/data/root/checkpoints",
        "/data/root/control",
        "/data/other/bronze",
        "/etc",
        "",
    ],
)
def test_a_path_that_the_layout_does_not_name_is_no_business_of_ours(path: str) -> None:
    assert part_of(ROOT, path) is None


def test_the_file_that_says_what_goes_gives_it_back() -> None:
    found = [*folders(ROOT, HOSTILE, RootPart)]
    assert from_text(to_text(found, ROOT), ROOT) == tuple(found)
    # a root that was moved meanwhile
    moved = Layout("s3://bucket/root")
    assert from_text(to_text(found, ROOT), moved) == tuple(folders(moved, HOSTILE, RootPart))


def test_a_file_that_somebody_wrote_into_removes_nothing_else() -> None:
    text = json.dumps({"removes": ["source", "../other", "silver/../source", "/etc", "silver/chess", ""]})
    assert from_text(text, ROOT) == (Folder("/data/root/silver/chess", RootPart.TABLES),)


@pytest.mark.parametrize(
    "changes",
    [
        {"source": {"path": "/data/root/bronze"}},
        {"source": {"path": "file:///data/root/x/../bronze/landing"}},
        {"registry": {"path": "/data/root/silver/chess/protos/"}},
        {"archive": {"path": "/data/root/silver/chess"}},
        {"registries": {"old": {"games": ["a*"], "path": "/data/root/quarantine/protos"}}},
    ],
    ids=["source", "uri", "registry", "archive", "registries"],
)
def test_what_is_not_ours_and_would_go_with_a_folder_refuses_all(changes: dict[str, object]) -> None:
    settings = Settings.model_validate({"root": "/data/root", **changes})
    with pytest.raises(SettingsInvalid, match="which the settings name as source, archive or registry, is inside"):
        require_apart(settings, folders(ROOT, ["chess"], RootPart))


def test_source_and_registry_below_the_root_are_in_nobodys_way() -> None:
    require_apart(Settings(root="/data/root"), folders(ROOT, HOSTILE, RootPart))
    # a name that only begins like a table's
    require_apart(
        Settings.model_validate({"root": "/data/root", "source": {"path": "/data/root/bronze-landing"}}),
        folders(ROOT, HOSTILE, RootPart),
    )


def test_what_goes_reads_so() -> None:
    both = [
        Folder("/r/checkpoints/bronze", RootPart.CHECKPOINTS),
        Folder("/r/silver/chess", RootPart.TABLES, 1234),
        Folder("/r/bronze", RootPart.TABLES, 1),
        Folder("/r/quarantine", RootPart.TABLES),
    ]
    assert as_text(both).split("\n") == [
        "- remove checkpoint /r/checkpoints/bronze",
        "- remove table /r/silver/chess (1,234 rows)",
        "- remove table /r/bronze (1 row)",
        "- remove table /r/quarantine",
    ]


@pytest.mark.parametrize(
    ("part", "stay", "condition"),
    [(RootPart.CHECKPOINTS, "tables", "CHECKPOINT_LOST"), (RootPart.TABLES, "checkpoints", "TABLE_LOST")],
)
def test_what_follows_from_half_of_it_is_said(part: RootPart, stay: str, condition: str) -> None:
    assert as_text(folders(ROOT, [], [part])).split("\n")[-1] == (
        f"! the {stay} stay, and do not fit any more: `demux run` will refuse with {condition}, "
        "and `demux rebuild --bronze` makes all tables again from the source"
    )


def test_the_options_that_ask_for_parts() -> None:
    assert options_of(RootPart) == "--tables --checkpoints"
    assert options_of([RootPart.CHECKPOINTS]) == "--checkpoints"

"""A checkpoint that is gone, or older than its table: a game goes on, bronze is refused with the command that helps."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from demux.core.errors import CheckpointLost
from tests.support.flow.fleet import STREAM, without_errors
from tests.support.flow.process import Command
from tests.support.flow.root import Root, wrapper

Copy = Callable[..., Root]


@pytest.mark.both_lanes
def test_a_game_whose_checkpoint_is_gone_goes_on_where_its_table_is(streamed: Root, copy: Copy, tmp_path: Path) -> None:
    root = copy(streamed, run=STREAM)
    undisturbed = root.copied_to(tmp_path / "undisturbed", run=STREAM)
    for number in range(2):
        # once with something new, once without
        for each in (root, undisturbed):
            each.produce(events=12 * (1 - number), games=2, versions=1, fault_rate=0.3)
        shutil.rmtree(root.layout.silver_checkpoint("chess"))
        for each in (root, undisturbed):
            without_errors(each.run())
        root.workplace().deserialize("chess")
        assert root.everything() == undisturbed.everything()


def test_a_game_whose_table_is_gone_is_refused_and_its_rebuild_gives_the_same_table(
    streamed: Root, copy: Copy, command: Command
) -> None:
    root = copy(streamed)
    shutil.rmtree(root.silver_path("chess"))
    # something new for both games: only the one with its table takes it
    root.produce(events=12, games=2, versions=1, fault_rate=0)
    said = command("run", "--root", str(root.folder))
    assert said.code == 3
    assert (
        f"failed: chess: TABLE_LOST The table {root.silver_path('chess')} is gone, and a stream has written it. "
        "Run `demux rebuild --game chess` to make it again from bronze, or put the table back."
    ) in said.out
    new = {game: sum(row["game_name"] == game for row in root.bronze()) for game in ("chess", "go")}
    assert len(root.silver("go")) + _undecoded(root, "go") == new["go"]

    rebuilt = command("rebuild", "--game", "chess", "--root", str(root.folder))
    assert rebuilt.code == 0
    assert len(root.silver("chess")) + _undecoded(root, "chess") == new["chess"]
    before, after = streamed.everything()["silver/chess"], root.everything()["silver/chess"]
    known = {row["_record_id"] for row in before[1]}
    assert (after[0], [row for row in after[1] if row["_record_id"] in known]) == before
    assert command("run", "--root", str(root.folder)).code == 0


def test_bronze_whose_checkpoint_is_gone_is_refused_and_its_rebuild_gives_the_same_tables(
    done: Root, copy: Copy, command: Command
) -> None:
    root = copy(done)
    shutil.rmtree(root.folder / "checkpoints" / "bronze")
    said = command("run", "--root", str(root.folder))
    assert said.code == 1
    assert said.err.startswith(
        f"CHECKPOINT_LOST The table {root.folder}/bronze was written by a query whose checkpoint"
    )
    assert "Run `demux rebuild --bronze`" in said.err
    assert root.everything() == done.everything()

    assert command("rebuild", "--bronze", "--root", str(root.folder)).code == 0
    assert root.silver("chess") == []
    assert command("run", "--root", str(root.folder)).code == 0
    assert root.everything() == done.everything()


def test_a_checkpoint_from_an_older_backup_is_refused_for_bronze_and_left_for_a_game(
    root: Root, event: str, tmp_path: Path
) -> None:
    root = Root.at(root.spark, root.folder, run=STREAM)
    schema_id = root.register("chess", event)
    backup = tmp_path / "backup"
    for offset in range(2):
        root.send([wrapper("chess", schema_id, b"")], offset)
        root.run()
        if offset == 0:
            shutil.copytree(root.folder / "checkpoints", backup)
    newest = shutil.copytree(root.layout.bronze_checkpoint, tmp_path / "newest")
    shutil.rmtree(root.folder / "checkpoints")
    shutil.copytree(backup, root.folder / "checkpoints")
    with pytest.raises(CheckpointLost, match="is older than the table: it knows batch 0, the table has batch 1") as e:
        root.workplace().ingest()
    assert "demux rebuild --bronze" in e.value.remedy
    shutil.rmtree(root.layout.bronze_checkpoint)
    shutil.copytree(newest, root.layout.bronze_checkpoint)
    root.send([wrapper("chess", schema_id, b"")], 2)
    without_errors(root.run())
    assert [row["_record_id"] for row in root.silver("chess")] == ["t/0/0", "t/0/1", "t/0/2"]


def _undecoded(root: Root, game: str) -> int:
    return sum(row["game_name"] == game and row["stage"] == "silver" for row in root.quarantine())

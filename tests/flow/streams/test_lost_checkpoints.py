"""A checkpoint that is gone, or older than its table: refused, with the command that makes the table again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from demux.core.errors import CheckpointLost
from tests.support.flow.fleet import STREAM
from tests.support.flow.process import Command
from tests.support.flow.root import Root, wrapper

Copy = Callable[..., Root]


def test_a_game_whose_checkpoint_is_gone_is_refused_and_its_rebuild_gives_the_same_table(
    streamed: Root, copy: Copy, command: Command
) -> None:
    root = copy(streamed)
    checkpoint = root.folder / "checkpoints" / "silver" / "chess"
    shutil.rmtree(checkpoint)
    # something new for both games: only the one with its checkpoint takes it
    root.produce(events=12, games=2, versions=1, fault_rate=0)
    said = command("run", "--root", str(root.folder))
    assert said.code == 3
    assert (
        f"failed: chess: CHECKPOINT_LOST The table {root.silver_path('chess')} was written by a query whose checkpoint "
        f"{checkpoint} is gone. Run `demux rebuild --game chess` to make the table again from its source, "
        "or put the checkpoint back."
    ) in said.out
    assert len(root.silver("chess")) == len(streamed.silver("chess"))
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


def test_a_checkpoint_from_an_older_backup_is_refused(root: Root, event: str, tmp_path: Path) -> None:
    root = Root.at(root.spark, root.folder, run=STREAM)
    schema_id = root.register("chess", event)
    backup = tmp_path / "backup"
    for offset in range(2):
        root.send([wrapper("chess", schema_id, b"")], offset)
        root.run()
        if offset == 0:
            shutil.copytree(root.folder / "checkpoints", backup)
    shutil.rmtree(root.folder / "checkpoints")
    shutil.copytree(backup, root.folder / "checkpoints")
    for work, rebuild in (
        (root.workplace().ingest, "demux rebuild --bronze"),
        (lambda: root.workplace().deserialize("chess"), "demux rebuild --game chess"),
    ):
        with pytest.raises(
            CheckpointLost, match="is older than the table: it knows batch 0, the table has batch 1"
        ) as e:
            work()
        assert rebuild in e.value.remedy


def _undecoded(root: Root, game: str) -> int:
    return sum(row["game_name"] == game and row["stage"] == "silver" for row in root.quarantine())

"""A root from Python, without Spark: empty, half written, and with tables."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from demux.api import Root
from demux.core.causes import Cause
from demux.core.errors import GameUnknown, RemovalUnfinished, SettingsInvalid
from demux.core.root.layout import Layout
from demux.core.tables import SILVER_ORIGIN
from tests.support.spark.tables import MOMENT, bronze_row, quarantine_row, write, write_bronze, write_quarantine

HOSTILE = "a'b; drop table x"


@pytest.fixture
def root(tmp_path: Path) -> Root:
    layout = Layout(str(tmp_path / "root"))
    write_bronze(layout.bronze, *(bronze_row("chess", at) for at in range(3)), bronze_row(HOSTILE, 3))
    rows = [{"_record_id": f"t/0/{at}", "_decoded_at": MOMENT, "_offset": at} for at in range(2)]
    write(layout.silver("chess"), SILVER_ORIGIN, rows)
    write_quarantine(
        layout.quarantine,
        quarantine_row("chess", 2, Cause.MALFORMED_PAYLOAD, 1, b"\xff") | {"quarantined_at": MOMENT},
    )
    return Root.open(layout.root)


def test_a_root_that_is_not_there_has_nothing_and_says_so(tmp_path: Path) -> None:
    root = Root.open(str(tmp_path / "none"))
    assert (root.games(), root.plan().tasks, root.quarantine()) == ((), (), ())
    assert root.status().notes == (f"There is no folder {tmp_path / 'none'} (yet).",)
    assert not (tmp_path / "none").exists()


def test_games_their_rows_and_their_quarantine_are_values(root: Root) -> None:
    assert root.games() == (HOSTILE, "chess")
    chess = next(game for game in root.status().games if game.game == "chess")
    assert (chess.bronze, chess.lag_rows, chess.quarantined) == (3, 0, {"MALFORMED_PAYLOAD": 1})
    assert root.silver("chess").arrow(["_offset"]).to_pylist() == [{"_offset": 0}, {"_offset": 1}]
    assert list(root.silver("chess").pandas()["_record_id"]) == ["t/0/0", "t/0/1"]
    assert root.silver("chess").polars(["_offset"]).rows() == [(0,), (1,)]
    assert pa.table(root.silver("chess")).column("_offset").to_pylist() == [0, 1]
    newest = root.silver("chess").newest(1)
    assert ([row["_offset"] for row in newest.rows], newest.count) == ([1], 2)
    (record,) = root.quarantine("chess", [Cause.MALFORMED_PAYLOAD])
    assert root.quarantine(since=MOMENT + timedelta(days=1)) == ()
    assert (record.cause, record.game) == ("MALFORMED_PAYLOAD", "chess")
    assert root.quarantine("chess", [Cause.UNKNOWN_SCHEMA]) == ()
    assert [task.game for task in root.plan().tasks] == [HOSTILE, "chess"]
    (account,) = root.reconcile(["chess"]).accounts
    assert (account.game, account.bronze, account.silver, account.quarantined) == ("chess", 3, 2, 1)


@pytest.mark.parametrize("game", ["Chess", HOSTILE, "../chess", ""])
def test_a_game_without_a_table_is_an_error_that_names_it(root: Root, game: str) -> None:
    with pytest.raises(GameUnknown) as caught:
        root.silver(game)
    assert repr(game)[1:-1] in caught.value.message


def test_changes_are_settings_and_mistakes_are_named(tmp_path: Path) -> None:
    assert Root.open(str(tmp_path), changes={"games.limit": 5}).settings.games.limit == 5
    file = tmp_path / "demux.yml"
    file.write_text("games: {limit: 7}\n", encoding="utf-8")
    assert Root.open(settings_file=file).settings.games.limit == 7
    with pytest.raises(SettingsInvalid, match="limit"):
        Root.open(str(tmp_path), changes={"games.limit": "many"})


def test_a_root_that_is_half_removed_is_not_read(root: Root) -> None:
    Path(root.layout.removal).parent.mkdir(parents=True, exist_ok=True)
    Path(root.layout.removal).write_text(json.dumps({"removes": []}), encoding="utf-8")
    with pytest.raises(RemovalUnfinished):
        root.status()

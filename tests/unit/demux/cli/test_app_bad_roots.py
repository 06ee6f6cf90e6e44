"""A root that a command cannot read: a sentence with a remedy, and never an empty root that balances."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from demux.cli.app import app
from demux.core.control.games_and_rounds import Control, KnownGame
from demux.core.error_mapping import as_demux_error
from demux.core.errors import DemuxError, SettingsInvalid, StorageFailed, TableDamaged, TableUnsuited
from demux.core.root.layout import Layout
from demux.core.tables import SILVER_ORIGIN
from tests.support.spark.tables import MOMENT, bronze_row, write, write_bronze, write_quarantine

LOOKS = {
    "status": ["status"],
    "show": ["show", "chess"],
    "plan": ["plan"],
    "reconcile": ["reconcile"],
    "quarantine": ["quarantine", "list"],
    "backfill": ["backfill", "--status"],
    "maintain": ["maintain", "--dry-run"],
}
NOBODY = 65534


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.chdir(tmp_path)
    layout = Layout(str(tmp_path / "root"))
    write_bronze(layout.bronze, bronze_row("chess", 1))
    write(layout.silver("chess"), SILVER_ORIGIN, [{"_record_id": "t/0/1", "_decoded_at": MOMENT}])
    write_quarantine(layout.quarantine)
    Control(None, layout).replace_games([KnownGame("chess", "here", "plan", MOMENT)])
    return layout


def error_of(root: str, words: list[str]) -> DemuxError:
    """The error that the command ends with, as it says it."""
    result = CliRunner().invoke(app, [*words, "--root", root])
    assert result.exception is not None, result.output
    assert not isinstance(result.exception, SystemExit), result.output
    return as_demux_error(result.exception)


def logs(layout: Layout) -> list[Path]:
    """The last commit of each table."""
    tables = (layout.bronze, layout.silver("chess"), layout.quarantine, layout.games)
    return [max(Path(table, "_delta_log").glob("*.json")) for table in tables]


@contextmanager
def denied(folder: str) -> Iterator[None]:
    """Nobody may read the folder while the block runs; root may do all, and so is another user meanwhile."""
    mode = Path(folder).stat().st_mode
    Path(folder).chmod(0)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        Path(folder).chmod(mode)


@pytest.mark.parametrize("look", sorted(LOOKS.keys() - {"plan"}))
def test_a_root_that_is_not_there_is_no_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: str) -> None:
    monkeypatch.chdir(tmp_path)
    error = error_of(str(tmp_path / "rot"), LOOKS[look])
    assert isinstance(error, SettingsInvalid)
    assert error.message == f"There is no root {tmp_path / 'rot'}."
    assert "--root" in error.remedy


def test_a_plan_may_be_made_before_there_is_a_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["plan", "--json", "--root", str(tmp_path / "new")])
    assert json.loads(result.stdout)["changes"] == []
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("look", LOOKS)
def test_a_file_is_no_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    error = error_of(str(tmp_path / "file"), LOOKS[look])
    assert error.message == f"The root {tmp_path / 'file'} is a file, not a folder."


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("part", ["", "bronze"])
def test_a_root_that_may_not_be_read_is_no_empty_one(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, look: str, part: str
) -> None:
    # a folder that the other user may be in
    monkeypatch.chdir("/")
    # what the command imports while it runs may not be read either
    CliRunner().invoke(app, [*LOOKS[look], "--root", layout.root])
    with denied(f"{layout.root}/{part}"):
        error = error_of(layout.root, LOOKS[look])
    assert isinstance(error, StorageFailed)
    assert f"The root {layout.root} cannot be read: Permission denied" in error.message
    assert "read permission" in error.remedy


@pytest.mark.parametrize("content", ['{"add": {"path": "part-0.par', "\0garbage", "[1]"], ids=["cut", "bytes", "list"])
@pytest.mark.parametrize("look", sorted(LOOKS.keys() - {"status", "backfill"}))
def test_a_log_that_is_cut_is_damage_and_not_a_table_for_spark(layout: Layout, look: str, content: str) -> None:
    for log in logs(layout):
        log.write_text(content, encoding="utf-8")
    error = error_of(layout.root, LOOKS[look])
    assert isinstance(error, TableDamaged)
    assert f"The table {layout.root}/" in error.message
    assert "\n" not in error.message
    assert "backup" in error.remedy


@pytest.mark.parametrize("look", sorted(LOOKS.keys() - {"status", "backfill", "quarantine"}))
def test_a_file_that_is_gone_is_damage(layout: Layout, look: str) -> None:
    for file in Path(layout.root).rglob("*.parquet"):
        file.unlink()
    assert isinstance(error_of(layout.root, LOOKS[look]), TableDamaged)


@pytest.mark.parametrize("look", sorted(LOOKS.keys() - {"status", "backfill"}))
def test_tables_of_a_newer_delta_say_what_reads_them(layout: Layout, look: str) -> None:
    for log in logs(layout):
        newer = log.with_name(f"{int(log.stem) + 1:020}.json")
        newer.write_text(json.dumps({"protocol": {"minReaderVersion": 99, "minWriterVersion": 99}}), encoding="utf-8")
    error = error_of(layout.root, LOOKS[look])
    assert isinstance(error, TableUnsuited)
    assert "spark" in error.remedy.lower()


@pytest.mark.parametrize("content", ["", "\0garbage"], ids=["empty", "bytes"])
def test_the_status_of_a_damaged_table_is_a_note_and_the_others_are_shown(layout: Layout, content: str) -> None:
    logs(layout)[0].write_text(content, encoding="utf-8")
    result = CliRunner().invoke(app, ["status", "--json", "--root", layout.root])
    status = json.loads(result.stdout)
    assert [game[0] for game in status["games"]] == ["chess"]
    assert content == "" or any(layout.bronze in note for note in status["notes"])

"""Rows of tables that other writers made, read without Spark."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake
from deltalake.exceptions import TableNotFoundError

from demux.core.delta.scan import (
    DataFile,
    batch_rows,
    data_files,
    file_rows,
    is_readable,
    open_readable,
    read_table,
    scan,
    table_rows,
)
from demux.core.errors import TableUnsuited
from demux.core.storage.files import Storage

GAMES = ("chess", "a/b", "100%+ü", None)
FAR = datetime(9000, 1, 1, tzinfo=timezone.utc)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A table with a partition for each game, a row in each; the last file has a column more."""
    path = str(tmp_path / "table")
    for number, game in enumerate(GAMES):
        row = {"game": game, "number": number, "at": FAR, "tags": [("a", number)]}
        more = {"more": "yes"} if number == len(GAMES) - 1 else {}
        types = [("game", pa.string()), ("number", pa.int64()), ("at", pa.timestamp("us", "UTC"))]
        types += [("tags", pa.map_(pa.string(), pa.int64())), *((name, pa.string()) for name in more)]
        rows = pa.Table.from_pylist([row | more], schema=pa.schema(types))
        write_deltalake(path, rows, mode="append", partition_by=["game"], schema_mode="merge" if more else None)
    return path


def test_a_table_has_its_partitions_and_null_where_a_file_lacks_a_column(path: str) -> None:
    rows = read_table(Storage(), path).sort_by("number").to_pylist()
    assert [(row["game"], row["number"], row["more"]) for row in rows] == [
        (game, number, "yes" if number == 3 else None) for number, game in enumerate(GAMES)
    ]
    assert {row["at"] for row in rows} == {FAR}
    assert [row["tags"] for row in rows] == [[("a", number)] for number in range(4)]


def test_only_the_columns_that_are_asked_for_are_read_in_their_order(path: str) -> None:
    found = read_table(Storage(), path, ["number", "game"])
    assert found.column_names == ["number", "game"]
    batches = table_rows(Storage(), DeltaTable(path), path, ["game"])
    assert {row["game"] for batch in batches for row in batch.to_pylist()} == set(GAMES)


def test_files_are_chosen_by_what_the_log_says_of_them(path: str) -> None:
    table = DeltaTable(path)
    files = data_files(table, path, pc.field("min.number") >= 2)
    assert [file.constants for file in files] != []
    assert {file.constants["game"] for file in files} == set(GAMES[2:])
    assert len(data_files(table, path)) == len(GAMES)


def test_constants_are_columns_and_come_before_what_the_file_has(path: str) -> None:
    (file, *_) = data_files(DeltaTable(path), path)
    fields = [pa.field("number", pa.int64()), pa.field("label", pa.string())]
    (batch,) = scan(Storage(), [DataFile(file.path, file.size, {"number": 7, "label": "x"})], fields)
    assert batch.to_pylist() == [{"number": 7, "label": "x"}]
    assert list(scan(Storage(), [], fields)) == []


def test_a_value_that_does_not_fit_the_type_is_an_error(path: str) -> None:
    (file, *_) = data_files(DeltaTable(path), path)
    with pytest.raises(pa.ArrowInvalid):
        list(file_rows(Storage(), file.path, file.size, [pa.field("at", pa.timestamp("ns", "UTC"))]))


@pytest.mark.parametrize("feature", [TableFeatures.DeletionVectors, TableFeatures.ColumnMapping])
def test_a_table_with_features_of_sparks_readers_says_so(path: str, feature: TableFeatures) -> None:
    assert is_readable(open_readable(Storage(), path))
    DeltaTable(path).alter.add_feature([feature], allow_protocol_versions_increase=True)
    with pytest.raises(TableUnsuited, match="Only Spark reads the table"):
        open_readable(Storage(), path)


def test_a_table_that_is_not_there_is_another_error(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        open_readable(Storage(), str(tmp_path / "none"))


def test_large_values_make_small_batches_only_where_their_column_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("demux.core.delta.scan.MAX_BATCH_BYTES", 64 * 2**10)
    large = pa.table({"small": list(range(8)), "large": [b"%d" % one * 8 * 2**10 for one in range(8)]})
    pq.write_table(large, tmp_path / "file", compression="none", use_dictionary=False)
    metadata = pq.read_metadata(tmp_path / "file")
    assert 1 <= batch_rows(metadata) <= 8 < batch_rows(metadata, ["small"])


def test_files_in_a_store_are_read_ahead_and_come_in_their_order(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Storage, "side_by_side", lambda *_: 32)
    files = sorted(data_files(DeltaTable(path), path) * 5, key=lambda file: str(file.constants["game"]))
    fields = [pa.field("game", pa.string())]
    in_order = [file.constants["game"] for file in files]
    assert [row["game"] for batch in scan(Storage(), files, fields) for row in batch.to_pylist()] == in_order
    monkeypatch.setattr("demux.core.delta.scan._AHEAD_BYTES", 0)
    assert [row["game"] for batch in scan(Storage(), files, fields) for row in batch.to_pylist()] == in_order

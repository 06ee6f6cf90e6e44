"""The archive as a real stream: which files a batch has, what becomes of them, and what is never lost in silence."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from bronze_ingest.archive.batches import require_same_reading, with_files
from bronze_ingest.archive.record_batch import ARCHIVED, MAX_PIECE_BYTES
from bronze_ingest.archive.stream import archive_stream
from demux.core.columns.spark import spark_struct
from demux.core.delta.app_transactions import Batch
from demux.core.errors import DemuxError, SettingsInvalid, SourceMissing, StorageFailed
from demux.core.root.layout import Layout
from demux.core.settings.source import ArchiveFormat, ArchiveSettings, CleanUp
from demux.core.storage.files import Storage
from demux.core.streaming.checkpoints import read_checkpoint
from demux.core.streaming.query import run_query
from demux.core.tables import QUARANTINE
from tests.support.data.archives import SUFFIXES, Archived, delimited, write_archive, write_records
from tests.support.spark.tables import MOMENT, write

DELIMITED = ArchiveFormat.DELIMITED
HOSTILE = (
    *("plain", "a b", "a%20b", "100%", "#1#", "q?[a-z]*{x,y}", "a\\b", "tab\t", "new\nline", "cr\r", "quote'\"`$(x)"),
    *("plus+&=;,", "12:30:00", "game=chess", "é漢字🎲", "e\u0301", "-rf", "~", "{}", "a" * 200),
)


@dataclass
class Archive:
    """An archive folder, and runs of one query over it."""

    spark: SparkSession
    root: Path
    settings: ArchiveSettings
    fail: Exception | None = None
    batches: list[list[dict[str, Any]]] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.root / "in"

    @property
    def layout(self) -> Layout:
        return Layout(str(self.root))

    @property
    def checkpoint(self) -> str:
        return self.layout.bronze_checkpoint

    def put(self, name: str, *values: bytes | None) -> Path:
        return write_archive(self.folder / name, self.settings.format, values)

    def run(self) -> list[list[dict[str, Any]]]:
        """Run to the end and return each batch's rows in the order of their ids."""
        self.batches = []
        require_same_reading(self.layout, self.settings)
        on_batch = with_files(Storage(), self.checkpoint, self._on_batch)
        run_query(Storage(), archive_stream(self.spark, self.settings), self.checkpoint, "archive", on_batch)
        return self.batches

    def interrupt(self) -> None:
        """Run into a failure at the end of the first batch."""
        self.fail = StorageFailed("The disk is full.", "Empty it.")
        with pytest.raises(StorageFailed, match="The disk is full"):
            self.run()
        self.fail = None

    def _on_batch(self, frame: DataFrame, batch: Batch) -> None:
        rows = [row.asDict(recursive=True) for row in frame.collect()]
        self.batches.append(sorted(rows, key=lambda row: str(row["record_id"])))
        if self.fail is not None:
            raise self.fail


Make = Callable[..., Archive]


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> Make:
    def archive(**settings: Any) -> Archive:
        (tmp_path / "in").mkdir(exist_ok=True)
        return Archive(spark, tmp_path, ArchiveSettings(path=f"{tmp_path}/in", **settings))

    return archive


def values(batches: list[list[dict[str, Any]]]) -> list[Any]:
    return sorted((row["value"] for batch in batches for row in batch), key=repr)


def left(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("layout", list(ArchiveFormat), ids=lambda layout: layout.value)
def test_records_reach_the_stream_with_everything_their_file_has(make: Make, layout: ArchiveFormat) -> None:
    archive = make(format=layout)
    record = Archived(b"\x00\xff", "events", 3, 2**40, MOMENT, b"k", [("h", b"v"), ("n", None)])
    path = write_records(archive.folder / f"sub/a b{SUFFIXES[layout]}", layout, [record])
    ((row,),) = archive.run()
    expected = Archived(record.value).fields() if layout is DELIMITED else record.fields()
    if expected["timestamp"] is not None:
        # pyspark collects times in this process's zone, and without saying so
        expected["timestamp"] = MOMENT.astimezone().replace(tzinfo=None)
    position = {"origin": "files", "record_id": f"file:{path}#0", "refused_sentence": None}
    assert row == {**expected, **position}


def test_spark_reads_the_files_names_and_never_their_bytes(make: Make) -> None:
    archive = make()
    archive.put("a.bin", b"a")
    stream = archive_stream(archive.spark, archive.settings)
    assert stream.schema == spark_struct(ARCHIVED)
    query = (
        stream.writeStream.format("noop")
        .option("checkpointLocation", archive.checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    plan = query._jsq.explainInternal(False)
    assert "ReadSchema: struct<path:string>" in plan


def test_a_batch_has_at_most_so_many_files_and_the_next_run_only_new_ones(make: Make) -> None:
    archive = make(max_files_per_batch=2)
    for number in range(5):
        archive.put(f"{number}.bin", b"%d" % number, b"x")
    first = archive.run()
    assert [len(batch) for batch in first] == [4, 4, 2]
    assert values(first) == [b"0", b"1", b"2", b"3", b"4", *[b"x"] * 5]
    assert archive.run() == []
    late = archive.put("5.bin", b"5")
    # a copy that keeps its time may be older than all that was read
    os.utime(late, (0, 0))
    assert values(archive.run()) == [b"5"]


def test_files_are_known_after_their_log_was_compacted(make: Make) -> None:
    archive = make(max_files_per_batch=1)
    for number in range(11):
        archive.put(f"{number:02}.bin", b"%02d" % number)
    assert [len(batch) for batch in archive.run()] == [1] * 11
    assert "9.compact" in left(archive.root / "checkpoints/bronze/sources/0")
    assert archive.run() == []


def test_a_pattern_chooses_files_and_names_that_begin_as_hidden_ones_are_left_alone(make: Make) -> None:
    archive = make(pattern="*.{bin,bin.gz}")
    for name in ("a.bin", "b.bin.gz", "c.txt", "_d.bin", ".e.bin", "_f/g.bin"):
        archive.put(name, name.encode())
    assert values(archive.run()) == [b"a.bin", b"b.bin.gz"]


def test_files_of_any_name_are_read_once_each(make: Make) -> None:
    archive = make(max_files_per_batch=100)
    paths = [archive.put(f"{name}.bin", name.encode()) for name in HOSTILE]
    paths += [archive.put(f"{name}/in.bin", name.encode()) for name in HOSTILE if not name.startswith("12")]
    ((*rows,),) = archive.run()
    assert {row["record_id"]: row["value"] for row in rows} == {
        f"file:{path}#0": (path.stem if path.name != "in.bin" else path.parent.name).encode() for path in paths
    }
    assert len(rows) == len(paths)


def test_malformed_pieces_come_beside_the_good_records_of_their_own_and_other_files(make: Make) -> None:
    archive = make()
    good = archive.put("a.bin", b"a")
    torn = archive.folder / "b 1.bin"
    torn.write_bytes(delimited(b"b") + b"\x05cut")
    (batch,) = archive.run()
    assert [(row["record_id"], row["value"], row["refused_sentence"]) for row in batch] == [
        (f"file:{good}#0", b"a", None),
        (f"file:{torn}#0", b"b", None),
        (
            *(f"file:{torn}#2", b"\x05cut"),
            f"Malformed bytes 2 to 5 of file:{torn}: the length says 5 bytes and the file has 3 more.",
        ),
    ]


def test_a_large_record_passes_among_small_ones(make: Make) -> None:
    archive = make()
    large = os.urandom(10_000_000)
    archive.put("a.bin", b"a", large, b"b")
    assert values(archive.run()) == sorted([b"a", b"b", large], key=repr)


def test_the_files_of_a_batch_are_moved_away_when_the_next_batch_begins(make: Make, tmp_path: Path) -> None:
    archive = make(clean=CleanUp.ARCHIVE, clean_path=f"{tmp_path}/done", max_files_per_batch=1)
    archive.put("sub/a b%.bin", b"a")
    archive.run()
    assert left(archive.folder) == ["sub/a b%.bin"]
    archive.put("b.bin", b"b")
    assert values(archive.run()) == [b"b"]
    assert left(archive.folder) == ["b.bin"]
    moved = tmp_path / f"done{archive.folder}/sub/a b%.bin"
    assert moved.read_bytes() == delimited(b"a")


def test_the_files_of_a_batch_are_deleted_when_the_next_batch_begins(make: Make) -> None:
    archive = make(clean=CleanUp.DELETE, max_files_per_batch=1)
    archive.put("sub/é #1.bin", b"a")
    archive.run()
    archive.put("b.bin", b"b")
    assert values(archive.run()) == [b"b"]
    assert left(archive.folder) == ["b.bin"]


def test_files_that_are_kept_stay_where_they_are(make: Make) -> None:
    archive = make(max_files_per_batch=1)
    archive.put("a.bin", b"a")
    archive.put("b.bin", b"b")
    archive.run()
    assert left(archive.folder) == ["a.bin", "b.bin"]


@pytest.mark.parametrize("clean", list(CleanUp), ids=lambda clean: clean.value)
def test_a_batch_that_failed_comes_again_with_its_files(make: Make, tmp_path: Path, clean: CleanUp) -> None:
    archive = make(clean=clean, clean_path=f"{tmp_path}/done", max_files_per_batch=1)
    archive.put("a.bin", b"a")
    archive.interrupt()
    archive.put("b.bin", b"b")
    assert [values([batch]) for batch in archive.run()] == [[b"a"], [b"b"]]


def test_a_file_that_is_gone_before_its_batch_comes_again_is_a_failure_and_not_nothing(make: Make) -> None:
    archive = make()
    path = archive.put("a #1.bin", b"a")
    archive.put("b.bin", b"b")
    archive.interrupt()
    path.rename(archive.root / "elsewhere")
    for stand_in in (None, path):
        if stand_in is not None:
            stand_in.mkdir()
        with pytest.raises(StorageFailed) as raised:
            archive.run()
        assert raised.value.message == f"The archived file file://{path} is gone since this batch was begun."
    path.rmdir()
    (archive.root / "elsewhere").rename(path)
    assert values(archive.run()) == [b"a", b"b"]


@pytest.mark.parametrize("change", ["pattern", "format of a written batch", "format and path"])
def test_files_of_a_batch_that_failed_are_not_read_in_another_way(make: Make, change: str) -> None:
    archive = make()
    archive.put("a.bin", b"a")
    archive.interrupt()
    match change:
        case "pattern":
            changes: dict[str, Any] = {"pattern": "*.txt"}
        case "format and path":
            (archive.root / "new").mkdir()
            changes = {"format": ArchiveFormat.NDJSON, "path": f"{archive.root}/new"}
        case _:
            changes = {"format": ArchiveFormat.NDJSON}
            query = read_checkpoint(Storage(), archive.checkpoint).query_id
            assert query is not None
            write(archive.layout.quarantine, QUARANTINE, [], txn=(query, 0))
    before = archive.settings
    archive.settings = before.model_copy(update=changes)
    with pytest.raises(SettingsInvalid) as raised:
        archive.run()
    assert raised.value.message == (
        f"Batch 0 of bronze was interrupted, and has files of {archive.folder} that were read with "
        "`archive.format: delimited` and `archive.pattern: null`."
    )
    archive.settings = before
    assert values(archive.run()) == [b"a"]
    archive.settings = before.model_copy(update=changes)
    assert values(archive.run()) == []


def test_a_format_may_be_corrected_as_long_as_nothing_is_written(make: Make) -> None:
    archive = make(format=ArchiveFormat.NDJSON)
    archive.put("a", b"a")
    right, archive.settings = archive.settings, archive.settings.model_copy(update={"format": DELIMITED})
    archive.interrupt()
    archive.settings = right
    assert values(archive.run()) == [b"a"]


def test_a_batch_that_failed_comes_again_when_the_archive_is_elsewhere_now(make: Make, tmp_path: Path) -> None:
    archive = make()
    archive.put("a.bin", b"a")
    archive.interrupt()
    (tmp_path / "new").mkdir()
    write_archive(tmp_path / "new/b.bin", DELIMITED, [b"b"])
    archive.settings = archive.settings.model_copy(update={"path": f"{tmp_path}/new"})
    archive.interrupt()
    right, archive.settings = archive.settings, archive.settings.model_copy(update={"format": ArchiveFormat.NDJSON})
    with pytest.raises(SettingsInvalid, match=f"has files of {archive.folder} that were read with"):
        archive.run()
    archive.settings = right
    assert values(archive.run()) == [b"a", b"b"]


def test_a_file_of_which_quarantine_would_keep_but_a_part_is_never_deleted(make: Make) -> None:
    archive = make(clean=CleanUp.DELETE, max_files_per_batch=1)
    large = archive.put("a.bin", b"a")
    large.write_bytes(delimited(b"a") + b"\xff" * (MAX_PIECE_BYTES + 1))
    archive.put("b.bin", b"b")
    with pytest.raises(StorageFailed) as raised:
        archive.run()
    assert raised.value.message == (
        f"The archived file file:{large} has a malformed piece that is too large for quarantine, and "
        "`archive.clean: delete` would delete it."
    )
    assert raised.value.remedy.startswith("Correct `archive.format`, or move the file elsewhere and leave an empty one")
    assert left(archive.folder) == ["a.bin", "b.bin"]
    large.rename(archive.root / "kept")
    large.touch()
    assert values(archive.run()) == [b"b"]


def test_a_file_that_is_gone_while_its_batch_is_read_is_a_failure_whatever_the_session_says(make: Make) -> None:
    archive = make()
    path = archive.put("a.bin", b"a")

    def on_batch(frame: DataFrame, batch: Batch) -> None:
        path.unlink()
        frame.collect()

    archive.spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        stream = archive_stream(archive.spark, archive.settings)
        with pytest.raises(DemuxError, match=f"{path} does not exist"):
            run_query(Storage(), stream, archive.checkpoint, "archive", on_batch)
    finally:
        archive.spark.conf.unset("spark.sql.files.ignoreMissingFiles")


def test_a_missing_folder_is_said(make: Make) -> None:
    archive = make()
    archive.folder.rmdir()
    with pytest.raises(SourceMissing, match=f"There is no archive at {archive.folder}"):
        archive.run()


def test_a_folder_that_spark_takes_for_a_pattern_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid, match=r"has \[ \], which makes it a pattern"):
        archive_stream(spark, ArchiveSettings(path=f"{tmp_path}/a[b]"))


@pytest.mark.parametrize("clean_path", ["in", "in/done", ".", "in/../in/x"])
def test_a_folder_for_read_files_within_the_archive_or_around_it_is_refused(
    make: Make, tmp_path: Path, clean_path: str
) -> None:
    archive = make(clean=CleanUp.ARCHIVE, clean_path=f"{tmp_path}/{clean_path}")
    with pytest.raises(SettingsInvalid, match="lie within each other"):
        archive.run()


def test_a_name_that_java_cannot_have_is_said_and_not_left_out(make: Make) -> None:
    archive = make()
    archive.put("a.bin", b"a")
    name = os.fsdecode(b"caf\xe9.bin")
    archive.put(name, b"b")
    with pytest.raises(StorageFailed, match=r"caf\\udce9.bin has a name that Java cannot have here"):
        archive.run()
    (archive.folder / name).rename(archive.folder / "café.bin")
    assert values(archive.run()) == [b"a", b"b"]

"""Archived files to records: what was written is read, and what is no record is one piece with its place."""

from __future__ import annotations

import errno
import gzip
import io
import tempfile
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bronze_ingest.archive.file_open import ArchiveFile, arrow_uri, local_path, open_archive
from bronze_ingest.archive.record_batch import MAX_BATCH_BYTES, MAX_PIECE_BYTES, MAX_RECORD_BYTES
from bronze_ingest.archive.stream import records
from demux.core.errors import StorageFailed
from demux.core.settings.source import ArchiveFormat
from tests.support.data.archives import (
    Archived,
    archive_bytes,
    batches,
    delimited,
    json_line,
    of,
    piece,
    pieces,
    rows,
    values,
    varint,
    write_records,
)

DELIMITED, PARQUET, NDJSON = ArchiveFormat.DELIMITED, ArchiveFormat.PARQUET, ArchiveFormat.NDJSON
LAYOUTS = pytest.mark.parametrize("layout", list(ArchiveFormat), ids=lambda layout: layout.value)

MOMENTS = st.datetimes(
    datetime(1970, 1, 1),
    datetime(9999, 12, 31),
    timezones=st.sampled_from([timezone.utc, timezone(timedelta(hours=5))]),
)
VALUES = st.binary(max_size=300)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
RECORDS = st.lists(
    st.builds(
        Archived,
        value=st.none() | VALUES,
        topic=st.none() | TEXTS,
        partition=st.none() | st.integers(0, 2**31 - 1),
        offset=st.none() | st.integers(0, 2**63 - 1),
        timestamp=st.none() | MOMENTS,
        key=st.none() | VALUES,
        headers=st.none() | st.lists(st.tuples(TEXTS, st.none() | VALUES), max_size=3),
    ),
    max_size=20,
)


def names_of(layout: ArchiveFormat) -> list[str]:
    return ["b.bin", "b.bin.gz"] if layout is not PARQUET else ["b.parquet"]


@pytest.mark.thorough
@LAYOUTS
@given(some=RECORDS)
def test_what_was_written_is_read(layout: ArchiveFormat, some: list[Archived]) -> None:
    if layout is DELIMITED:
        some = of(*(record.value or b"" for record in some))
    for name in names_of(layout):
        with tempfile.TemporaryDirectory() as folder:
            path = f"file:{write_records(Path(folder, name), layout, some)}"
            with open_archive(path) as file:
                found = [row for batch in records(path, file, layout) for row in batch.to_pylist()]
        assert [{key: row[key] for key in some[0].fields()} for row in found] == [record.fields() for record in some]
        assert [row["refused_sentence"] for row in found] == [None] * len(some)
        assert len({row["record_id"] for row in found}) == len(some)


def test_a_record_is_known_by_its_file_and_its_first_byte() -> None:
    content = archive_bytes(DELIMITED, of(b"ab", b"", b"c"))
    assert [row["record_id"] for row in rows(content, DELIMITED, "file:/x #1.bin")] == [
        "file:/x #1.bin#0",
        "file:/x #1.bin#3",
        "file:/x #1.bin#4",
    ]
    lines = archive_bytes(NDJSON, of(b"ab", None))
    second = len(json_line(Archived(b"ab")))
    assert [row["record_id"] for row in rows(lines, NDJSON)] == ["file:/a/b.bin#0", f"file:/a/b.bin#{second}"]


def test_a_record_of_a_parquet_file_is_known_by_its_row_in_the_whole_file() -> None:
    content = archive_bytes(PARQUET, of(b"a", b"b", b"c"), row_group_size=2)
    assert [row["record_id"] for row in rows(content, PARQUET)] == [f"file:/a/b.bin#{row}" for row in range(3)]


@LAYOUTS
def test_an_empty_file_gives_nothing(layout: ArchiveFormat) -> None:
    assert [rows(b"", layout), rows(b"", layout, "file:/a.gz")] == [[], []]
    assert rows(archive_bytes(layout, []), layout) == []


def test_a_file_cut_anywhere_gives_the_whole_records_and_exactly_the_rest_as_one_piece() -> None:
    some = [b"a", b"", b"b" * 200, b"ccc"]
    content = archive_bytes(DELIMITED, of(*some))
    ends = [sum(len(delimited(value)) for value in some[:count]) for count in range(len(some) + 1)]
    for size in range(len(content) + 1):
        whole = max(count for count, end in enumerate(ends) if end <= size)
        assert values(content[:size], DELIMITED) == some[:whole]
        rest = content[ends[whole] : size]
        expected = [(ends[whole], ends[whole], len(rest), rest)] if rest else []
        assert [found[:4] for found in pieces(content[:size], DELIMITED)] == expected


@pytest.mark.parametrize("layout", [DELIMITED, NDJSON], ids=lambda layout: layout.value)
def test_compressed_data_cut_anywhere_says_so_in_one_piece_behind_the_good_records(layout: ArchiveFormat) -> None:
    some: list[bytes | None] = [b"a", b"bb", b"c" * 50]
    content = archive_bytes(layout, of(*some))
    packed = gzip.compress(content, mtime=0)
    for size in range(2, len(packed)):
        found = rows(packed[:size], layout, "file:/a.gz")
        (cut,) = [piece(row) for row in found if row["refused_sentence"] is not None]
        good = [row["value"] for row in found if row["refused_sentence"] is None]
        assert good == some[: len(good)]
        assert cut.kept == content[cut.start : cut.start + cut.size]
        assert (cut.start, cut.kept) == (cut.first, content[cut.start : cut.start + cut.size])
        assert "Compressed file ended before the end-of-stream marker was reached" in cut.sentence
        assert cut.start == len(archive_bytes(layout, of(*good)))


@pytest.mark.thorough
def test_a_parquet_file_cut_anywhere_is_one_piece() -> None:
    content = archive_bytes(PARQUET, of(b"a", b"b"))
    for size in range(1, len(content)):
        assert [found[:4] for found in pieces(content[:size], PARQUET)] == [(0, 0, size, content[:size])]
        assert values(content[:size], PARQUET) == []


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (b"\xff" * 10 + b"\x01", "a length of more than 10 bytes"),
        (varint(2**31) + b"xy", "a length of 2147483648, over 2147483647"),
        (b"\xff" * 9 + b"\x7f", "a length of 1180591620717411303423, over 2147483647"),
        (varint(1000) + b"xyz", "the length says 1000 bytes and the file has 3 more"),
        (varint(2**31 - 1) + b"xyz", "the length says 2147483647 bytes and the file has 3 more"),
        (b"\x80", "the file ends within a length"),
    ],
)
def test_a_length_that_cannot_be_ends_the_file_with_all_that_is_behind_it(tail: bytes, reason: str) -> None:
    content = archive_bytes(DELIMITED, of(b"good"))
    (found,) = pieces(content + tail, DELIMITED)
    assert found == (5, 5, len(tail), tail, f"Malformed bytes 5 to {4 + len(tail)} of file:/a/b.bin: {reason}.")
    assert values(content + tail, DELIMITED) == [b"good"]


def test_a_length_is_read_however_many_bytes_it_takes() -> None:
    some = [b"x" * size for size in (127, 128, 129, 2**14 - 1, 2**14, 2**14 + 1)]
    assert values(archive_bytes(DELIMITED, of(*some)), DELIMITED) == some


def test_a_length_may_be_written_longer_than_it_needs() -> None:
    assert values(b"\x82\x80\x00ab" + b"\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00c", DELIMITED) == [b"ab", b"c"]


def test_of_a_large_piece_quarantine_keeps_the_beginning_and_the_whole_range() -> None:
    rest = b"\xff" * 11 + bytes(3 * MAX_PIECE_BYTES)
    (found,) = pieces(rest, DELIMITED)
    assert (found.start, found.size, found.kept) == (0, len(rest), rest[:MAX_PIECE_BYTES])
    assert found.sentence.endswith(" Only the first 1048576 bytes are kept.")


def test_a_record_that_is_too_large_is_a_piece_and_the_next_one_is_read() -> None:
    large = delimited(b"x" * (MAX_RECORD_BYTES + 1))
    content = b"".join([delimited(b"a"), large, delimited(b"b")])
    (found,) = pieces(content, DELIMITED)
    assert (found.start, found.size, found.kept) == (2, len(large), large[:MAX_PIECE_BYTES])
    assert "a record of more than 67108864 bytes" in found.sentence
    assert values(content, DELIMITED) == [b"a", b"b"]


@pytest.mark.thorough
@LAYOUTS
def test_a_large_record_stands_alone_and_batches_are_bounded(layout: ArchiveFormat) -> None:
    large = b"x" * 10_000_000
    small = [b"y" * 20] * 25_000 + [b"z" * 500_000] * 30
    content = archive_bytes(layout, of(*small[:10], large, *small))
    found = batches(content, layout)
    assert [value for batch in found for value in batch.column("value").to_pylist()] == [*small[:10], large, *small]
    assert [len(batch) for batch in found if batch.nbytes > MAX_BATCH_BYTES + 2**20] == [1]


@given(content=st.lists(st.binary(max_size=40) | st.sampled_from([b"\n", b"\x03abc", b"\xff" * 9])).map(b"".join))
def test_bytes_of_any_kind_are_read_to_the_end_without_a_gap(content: bytes) -> None:
    place = 0
    for row in rows(content, DELIMITED):
        bad = row["refused_sentence"] is not None
        assert int(row["record_id"].rpartition("#")[2]) == place
        place += piece(row).size if bad else _size(content, place)
    assert place == len(content)
    for row in rows(content, NDJSON):
        # no bytes happen to be a record
        assert piece(row).kept == content[piece(row).first :][: piece(row).size]
    rows(content, PARQUET)
    rows(content, NDJSON, "file:/a.gz")


def _size(content: bytes, place: int) -> int:
    """The size of the record that begins here, with its length."""
    length = at = 0
    while True:
        byte = content[place + at]
        length |= (byte & 0x7F) << 7 * at
        at += 1
        if byte < 0x80:
            return at + length


def test_data_that_is_not_compressed_though_its_name_says_so_is_one_piece() -> None:
    content = archive_bytes(NDJSON, of(b"a", b"b"))
    assert pieces(content, NDJSON, "file:/a.gz") == [
        (
            *(0, 0, len(content), content),
            f"Malformed bytes 0 to {len(content) - 1} of file:/a.gz: the name ends in .gz and this is no gzip data.",
        )
    ]


@pytest.mark.parametrize("layout", [DELIMITED, NDJSON], ids=lambda layout: layout.value)
def test_compressed_files_behind_each_other_are_one_and_what_is_no_gzip_behind_them_is_said(
    layout: ArchiveFormat,
) -> None:
    parts = [archive_bytes(layout, of(value)) for value in (b"a", b"b")]
    packed = b"".join(gzip.compress(part, mtime=0) for part in parts)
    assert values(packed, layout, "file:/a.gz") == [b"a", b"b"]
    (found,) = pieces(packed + b"garbage", layout, "file:/a.gz")
    assert (found.start, found.kept) == (len(b"".join(parts)), b"")
    assert "the gzip data is broken: Not a gzipped file" in found.sentence
    assert values(packed + b"garbage", layout, "file:/a.gz") == [b"a", b"b"]


@pytest.mark.parametrize("layout", [DELIMITED, NDJSON], ids=lambda layout: layout.value)
def test_a_wrong_checksum_is_said_behind_the_records(layout: ArchiveFormat) -> None:
    packed = bytearray(gzip.compress(archive_bytes(layout, of(b"a", b"b")), mtime=0))
    packed[-8] ^= 1
    (found,) = pieces(bytes(packed), layout, "file:/a.gz")
    assert "the gzip data is broken: CRC check failed" in found.sentence
    assert values(bytes(packed), layout, "file:/a.gz") == [b"a", b"b"]


@LAYOUTS
def test_a_file_that_cannot_be_read_to_its_end_is_a_failure_and_no_malformed_piece(layout: ArchiveFormat) -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() > 0 or layout is PARQUET:
                raise OSError(errno.EIO, "Input/output error")
            return super().read(10)

    for path in ("file:/a b.bin", "file:/a b.gz") if layout is not PARQUET else ("file:/a b.bin",):
        content = archive_bytes(layout, of(b"a" * 100))
        file = ArchiveFile(path, Failing(gzip.compress(content) if path.endswith("gz") else content))
        with pytest.raises(StorageFailed, match=f"The archived file {path} cannot be read: Input/output error"):
            list(records(path, file, layout))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: None, "No such file or directory"),
        (lambda path: path.mkdir(), "Is a directory"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
    ],
    ids=["gone", "a folder", "a loop"],
)
def test_a_file_that_cannot_be_opened_is_a_failure_with_its_name(
    tmp_path: Path, make: Callable[[Path], None], reason: str
) -> None:
    path = tmp_path / "a\nb.bin"
    make(path)
    with pytest.raises(StorageFailed) as raised:
        open_archive(f"file:{path}")
    assert raised.value.message == f"The archived file file:{tmp_path}/a\\u000ab.bin cannot be read: {reason}."
    assert raised.value.remedy.startswith("Put the file back")


@pytest.mark.parametrize(
    ("path", "local", "uri"),
    [
        ("file:/a b%20#?.bin", "/a b%20#?.bin", "file:///a%20b%2520%23%3F.bin"),
        ("file:/new\nline:é", "/new\nline:é", "file:///new%0Aline%3A%C3%A9"),
        ("/plain", "/plain", "/plain"),
        ("dbfs:/Volumes/c/s/v/a.bin", "/Volumes/c/s/v/a.bin", "dbfs:///Volumes/c/s/v/a.bin"),
        ("dbfs:/mnt/a.bin", "/dbfs/mnt/a.bin", "dbfs:///mnt/a.bin"),
        ("s3a://bucket/a b.bin", None, "s3://bucket/a%20b.bin"),
        ("abfss://box@host/a.bin", None, "abfss://box@host/a.bin"),
    ],
)
def test_a_file_has_the_same_name_for_spark_and_for_the_worker(path: str, local: str | None, uri: str) -> None:
    assert (local_path(path), arrow_uri(path)) == (local, uri)


def test_a_file_on_another_file_system_is_opened_by_pyarrow(tmp_path: Path) -> None:
    from bronze_ingest.archive.file_open import _remote

    path = write_records(tmp_path / "a b%20.bin", DELIMITED, of(b"a", b"b" * 300))
    file = ArchiveFile("there", _remote(f"file:{path}"))
    assert [row["value"] for batch in records("there", file, DELIMITED) for row in batch.to_pylist()] == [
        b"a",
        b"b" * 300,
    ]
    file.close()
    with pytest.raises(StorageFailed, match=r"The archived file gopher://there/a\.bin cannot be read: Unrecognized"):
        open_archive("gopher://there/a.bin")

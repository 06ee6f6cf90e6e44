"""Archived lines to records: one bad line is one piece, with its reason and its place."""

from __future__ import annotations

import re
from datetime import datetime, timezone

import pytest

from bronze_ingest.archive.record_batch import MAX_PIECE_BYTES, MAX_RECORD_BYTES
from demux.core.settings.source import ArchiveFormat
from tests.support.data.archives import Archived, archive_bytes, json_line, of, piece, pieces, rows, values

NDJSON = ArchiveFormat.NDJSON


def test_lines_cut_anywhere_lose_nothing_but_the_line_that_was_cut() -> None:
    content = archive_bytes(NDJSON, of(b"a", None, b"\x00\xff"))
    ends = [0, *(found.end() for found in re.finditer(rb"\n", content))]
    for size in range(len(content) + 1):
        whole = max(count for count, end in enumerate(ends) if end <= size)
        rest = content[ends[whole] : size]
        # a line is a line also without a newline behind it
        if size + 1 in ends:
            whole, rest = whole + 1, b""
        assert values(content[:size], NDJSON) == [b"a", None, b"\x00\xff"][:whole]
        expected = [(ends[whole], ends[whole], len(rest), rest)] if rest else []
        assert [found[:4] for found in pieces(content[:size], NDJSON)] == expected


def test_a_line_that_is_too_long_is_a_piece_and_the_next_one_is_read() -> None:
    large = b'{"value": "' + b"A" * MAX_RECORD_BYTES + b'"}'
    content = b"".join([json_line(Archived(b"a")), large, b"\n", json_line(Archived(b"b"))])
    (found,) = pieces(content, NDJSON)
    assert (found.first, found.size, found.kept) == (
        len(json_line(Archived(b"a"))),
        len(large),
        large[:MAX_PIECE_BYTES],
    )
    assert "a line of more than 67108864 bytes" in found.sentence
    assert values(content, NDJSON) == [b"a", b"b"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"nonsense", "not JSON: Expecting value: line 1 column 1 (char 0)"),
        (b'{"value": "YQ=="', "not JSON: Expecting ',' delimiter: line 1 column 18"),
        (b"[" * 200_000, "JSON that is nested too deeply"),
        (b'{"value": "\xff"}', "not UTF-8"),
        ('{"value": "YQ=="}'.encode("utf-16"), "not UTF-8"),
        (b'["YQ=="]', "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"{}", "no key `value`"),
        (b'{"value": 1}', "`value` is no text in base64"),
        (b'{"value": "YQ="}', "`value` is no base64"),
        (b'{"value": "Y!Q=="}', "`value` is no base64"),
        ('{"value": "é"}'.encode(), "`value` is no base64"),
        (b'{"value": null, "key": ["a"]}', "`key` is no text in base64"),
        (b'{"value": null, "topic": 1}', "`topic` is no text"),
        (b'{"value": null, "topic": "\\ud800"}', "`topic` has half of a surrogate pair"),
        (b'{"value": null, "partition": "0"}', "`partition` is no integer of 32 bits"),
        (b'{"value": null, "partition": 2147483648}', "`partition` is no integer of 32 bits"),
        (b'{"value": null, "partition": true}', "`partition` is no integer of 32 bits"),
        (b'{"value": null, "offset": 1.0}', "`offset` is no integer of 64 bits"),
        (b'{"value": null, "offset": 9223372036854775808}', "`offset` is no integer of 64 bits"),
        (b'{"value": null, "timestamp": 1.5}', "`timestamp` is neither ISO 8601 nor milliseconds since 1970"),
        (b'{"value": null, "timestamp": "today"}', "`timestamp` is neither ISO 8601 nor milliseconds since 1970"),
        (
            b'{"value": null, "timestamp": 999999999999999}',
            "`timestamp` is neither ISO 8601 nor milliseconds since 1970",
        ),
        (b'{"value": null, "timestamp": "2025-02-30T00:00:00Z"}', "`timestamp` is no time: day is out of range"),
        (b'{"value": null, "timestamp": "0001-01-01T00:00+14:00"}', "`timestamp` is not within the years 1 to 9999"),
        (b'{"value": null, "headers": {}}', "`headers` is no list of objects"),
        (b'{"value": null, "headers": [1]}', "`headers` is no list of objects"),
        (b'{"value": null, "headers": [{"key": 1}]}', "`headers.key` is no text"),
        (b'{"value": null, "headers": [{"key": "h", "value": "?"}]}', "`headers.value` is no base64"),
    ],
)
def test_a_bad_line_is_a_piece_with_its_reason_and_the_next_line_is_read(line: bytes, reason: str) -> None:
    good = json_line(Archived(b"a"))
    content = good + line + b"\r\n" + good
    found = rows(content, NDJSON)
    assert [row["value"] for row in found] == [b"a", line + b"\r", b"a"]
    bad = piece(found[1])
    assert (bad.start, bad.first, bad.size) == (len(good), len(good), len(line) + 1)
    assert f"of file:/a/b.bin: {reason}" in bad.sentence


def test_empty_lines_other_line_ends_and_a_byte_order_mark_are_no_records() -> None:
    content = b'\xef\xbb\xbf{"value": "YQ=="}\r\n\r\n\n  \n{"value": null}\n{"value": "", "more": [1, {"a": 2}]}'
    assert values(content, NDJSON) == [b"a", None, b""]
    assert pieces(content, NDJSON) == []


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("1735787045678", datetime(2025, 1, 2, 3, 4, 5, 678_000)),
        ("-1", datetime(1969, 12, 31, 23, 59, 59, 999_000)),
        ('"2025-01-02T03:04:05Z"', datetime(2025, 1, 2, 3, 4, 5)),
        ('"2025-01-02 03:04"', datetime(2025, 1, 2, 3, 4)),
        ('"2025-01-02T03:04:05.6"', datetime(2025, 1, 2, 3, 4, 5, 600_000)),
        ('"2025-01-02T03:04:05.678901999+02:00"', datetime(2025, 1, 2, 1, 4, 5, 678_901)),
        ('"2025-01-02T03:04:05-0330"', datetime(2025, 1, 2, 6, 34, 5)),
    ],
)
def test_a_line_has_its_time_in_iso_8601_or_as_milliseconds(text: str, time: datetime) -> None:
    (row,) = rows(b'{"value": null, "timestamp": %s}' % text.encode(), NDJSON)
    assert (row["timestamp"], row["refused_sentence"]) == (time.replace(tzinfo=timezone.utc), None)

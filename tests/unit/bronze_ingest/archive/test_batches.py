"""Which files a micro-batch is made of, from the text of its query's checkpoint."""

from __future__ import annotations

import json

import pytest

from bronze_ingest.archive.batches import Listing, files_of, listings

KAFKA = '{"events":{"0":5}}'
# a topic may have any name
TRICKY = '{"logOffset":{"0":5}}'
DELTA = '{"sourceVersion":1,"reservoirId":"x","reservoirVersion":3,"index":-1,"isStartingVersion":false}'


def offsets(*sources: str) -> str:
    return "\n".join(("v1", '{"batchWatermarkMs":0,"conf":{}}', *sources))


def files(number: int) -> str:
    return json.dumps({"logOffset": number})


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        (offsets(files(0)), None, [Listing(0, -1, 0)]),
        (offsets(files(4)), offsets(files(3)), [Listing(0, 3, 4)]),
        (offsets(KAFKA, files(4)), offsets(KAFKA, files(4)), []),
        (offsets(KAFKA, files(0)), offsets(KAFKA, "-"), [Listing(1, -1, 0)]),
        (offsets(DELTA, files(9), files(2)), offsets(DELTA, files(7), files(2)), [Listing(1, 7, 9)]),
        (offsets(TRICKY, "-"), offsets(TRICKY, "-"), []),
    ],
    ids=["first batch", "next batch", "only kafka has more", "files begin later", "two archives", "no files"],
)
def test_a_batch_has_the_log_entries_since_the_batch_before(
    now: str, before: str | None, expected: list[Listing]
) -> None:
    assert listings(now, before) == expected


def test_a_log_names_the_files_of_its_own_entries_and_a_compacted_one_those_of_all_before() -> None:
    lines = [json.dumps({"path": f"file:///a%20{entry}", "timestamp": 1, "batchId": entry}) for entry in (0, 1, 1, 2)]
    log = "\n".join(("v1", *lines))
    assert files_of(log, Listing(0, -1, 0)) == ["file:///a%200"]
    assert files_of(log, Listing(0, 0, 1)) == ["file:///a%201", "file:///a%201"]
    assert files_of("v1\n", Listing(0, 0, 1)) == []

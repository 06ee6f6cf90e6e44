"""What a fleet reads of a table's log without reading the table: who wrote last, and where its files are."""

from __future__ import annotations

import pytest

from deserializer.offsets.bronze_log import file_path
from deserializer.silver.file_table import last_written_by

OURS = '{"txn":{"appId":"fleet","version":7}}'
OTHERS = '{"txn":{"appId":"stream","version":1}}'
REPLAYED = '{"add":{"path":"a","partitionValues":{},"size":1,"dataChange":true}}'
COMPACTED = '{"remove":{"path":"a","dataChange":false}}'
DELETED = '{"remove":{"path":"a","dataChange":true}}'
WIDENED = (
    '{"commitInfo":{"operationParameters":{"mode":"Overwrite"},"userMetadata":"demux: the same rows, written anew"}}\n'
    '{"remove":{"path":"a","dataChange":true}}'
)
EMPTIED = '{"commitInfo":{"operationParameters":{"mode":"Overwrite"}}}'


@pytest.mark.parametrize(
    ("newest_first", "is_so"),
    [
        ([OURS], True),
        ([REPLAYED, COMPACTED, OURS], True),
        ([WIDENED, OURS], True),
        ([WIDENED, OTHERS, OURS], False),
        ([OTHERS, OURS], False),
        ([DELETED, OURS], False),
        ([EMPTIED, OURS], False),
        (["", OURS], False),
        ([OURS.replace("7", "8")], False),
        ([], False),
    ],
)
def test_a_table_was_last_written_by_a_transaction_unless_a_batch_followed_or_rows_are_gone(
    newest_first: list[str], is_so: bool
) -> None:
    commits = ((len(newest_first) - at, text) for at, text in enumerate(newest_first))
    assert last_written_by(commits, "fleet", 7) is is_so


@pytest.mark.parametrize(
    ("in_log", "path"),
    [
        ("game_name=a%3Ab/part.parquet", "s3://lake/bronze/game_name=a%3Ab/part.parquet"),
        ("s3://other/part.parquet", "s3://other/part.parquet"),
        ("/elsewhere/part.parquet", "/elsewhere/part.parquet"),
    ],
)
def test_a_file_of_bronze_is_below_the_table_unless_the_log_says_where(in_log: str, path: str) -> None:
    assert file_path("s3://lake/bronze", in_log) == path

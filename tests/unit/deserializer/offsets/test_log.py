"""Where a fleet finds the files of a table, by its log."""

from __future__ import annotations

import pytest

from demux.core.delta.log import file_path


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

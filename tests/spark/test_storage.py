"""What is on this machine is read without the JVM, as Hadoop reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demux.storage import file_names, read_text, replace_text

TEXT = 'one\r\ntwo\u2028three "é" \U0001f600\n'


@pytest.fixture(params=["plain", "with space", "100%25 #1?", "übung"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    made = tmp_path / str(request.param)
    made.mkdir()
    return made


@pytest.mark.parametrize("before", ["", "file:"])
def test_what_hadoop_wrote_is_read_and_named(spark: SparkSession, folder: Path, before: str) -> None:
    replace_text(spark, f"{before}{folder}/b.txt", TEXT)
    replace_text(spark, f"{before}{folder}/a.txt", "")
    (folder / "inside").mkdir()
    assert (folder / ".b.txt.crc").exists()
    assert file_names(spark, f"{before}{folder}") == ["a.txt", "b.txt", "inside"]
    assert read_text(spark, f"{before}{folder}/b.txt") == TEXT


def test_there_are_no_names_where_there_is_no_folder(spark: SparkSession, tmp_path: Path) -> None:
    for missing in (tmp_path / "none", tmp_path / ("long" * 100)):
        assert file_names(spark, str(missing)) == []

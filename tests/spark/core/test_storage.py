"""What is on this machine is read and written without the JVM, as Hadoop reads and writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from demux.core.storage.files import Storage

TEXT = 'one\r\ntwo\u2028three "é" \U0001f600\n'


@pytest.fixture(params=["plain", "with space", "100%25 #1?", "übung"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    made = tmp_path / str(request.param)
    made.mkdir()
    return made


def hadoop(spark: SparkSession, file: str) -> tuple[Any, Any]:
    path = spark._jvm.org.apache.hadoop.fs.Path(file)  # type: ignore[union-attr]
    return path, path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())


def written_by_hadoop(spark: SparkSession, file: str, text: str) -> None:
    path, system = hadoop(spark, file)
    stream = system.create(path, True)
    stream.write(bytearray(text.encode()))
    stream.close()


def read_by_hadoop(spark: SparkSession, file: str) -> str:
    path, system = hadoop(spark, file)
    stream = system.open(path)
    text = spark._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")  # type: ignore[union-attr]
    stream.close()
    return str(text)


@pytest.mark.parametrize("before", ["", "file:"])
def test_what_hadoop_wrote_is_read_named_and_replaced(spark: SparkSession, folder: Path, before: str) -> None:
    written_by_hadoop(spark, f"{before}{folder}/b.txt", TEXT)
    written_by_hadoop(spark, f"{before}{folder}/a.txt", "")
    (folder / "inside").mkdir()
    assert (folder / ".b.txt.crc").exists()
    assert Storage().names(f"{before}{folder}") == ["a.txt", "b.txt", "inside"]
    assert Storage().read_text(f"{before}{folder}/b.txt") == TEXT
    # Hadoop compares what it reads with the checksum that it finds
    Storage().write_text(f"{before}{folder}/b.txt", f"{TEXT}{TEXT}")
    assert read_by_hadoop(spark, f"{before}{folder}/b.txt") == f"{TEXT}{TEXT}"
    Storage().delete_folder(f"{before}{folder}")
    assert not Storage().exists(f"{before}{folder}/b.txt")
    assert not folder.exists()


def test_there_are_no_names_where_there_is_no_folder(tmp_path: Path) -> None:
    for missing in (tmp_path / "none", tmp_path / ("long" * 100)):
        assert Storage().names(str(missing)) == []

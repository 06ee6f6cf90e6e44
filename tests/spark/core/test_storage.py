"""What is on this machine is read and written without the JVM, as Hadoop reads and writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from pyspark.sql import SparkSession

import demux.core.storage
from demux.core.storage import exists, file_names, read_text, remove_folder, replace_text, storage_of
from demux.core.storage.access import StoreAccess

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
    assert file_names(spark, f"{before}{folder}") == ["a.txt", "b.txt", "inside"]
    assert read_text(spark, f"{before}{folder}/b.txt") == TEXT
    # Hadoop compares what it reads with the checksum that it finds
    replace_text(spark, f"{before}{folder}/b.txt", f"{TEXT}{TEXT}")
    assert read_by_hadoop(spark, f"{before}{folder}/b.txt") == f"{TEXT}{TEXT}"
    remove_folder(spark, f"{before}{folder}")
    assert not exists(spark, f"{before}{folder}/b.txt")
    assert not folder.exists()


def test_there_are_no_names_where_there_is_no_folder(spark: SparkSession, tmp_path: Path) -> None:
    for missing in (tmp_path / "none", tmp_path / ("long" * 100)):
        assert file_names(spark, str(missing)) == []


def test_every_session_of_a_process_reaches_files_as_its_first_one_was_told(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = StoreAccess("http://127.0.0.1:1", "us-east-1", "id", "hidden", None, path_style=True)
    conf = spark.sparkContext.getConf().setAll(list(access.spark_conf().items()))
    monkeypatch.setattr(demux.core.storage, "_OF_CONTEXT", WeakKeyDictionary())
    monkeypatch.setattr(spark.sparkContext, "_conf", conf)
    assert storage_of(spark.newSession()).access == access

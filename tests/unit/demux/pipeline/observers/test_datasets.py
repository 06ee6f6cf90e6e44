"""Datasets have the names of OpenLineage's specification."""

from __future__ import annotations

import json

import pytest

from demux.core.settings.settings import Settings
from demux.pipeline.observers.datasets import DatasetField, DatasetName, dataset_at, fields_of, sources


@pytest.mark.parametrize(
    ("path", "namespace", "name"),
    [
        ("/lake/demux/bronze", "file", "/lake/demux/bronze"),
        ("file:///lake/demux/bronze", "file", "/lake/demux/bronze"),
        ("s3://lake/demux/bronze", "s3://lake", "demux/bronze"),
        ("s3a://lake/demux/bronze", "s3://lake", "demux/bronze"),
        ("gs://lake/demux", "gs://lake", "demux"),
        ("abfss://box@acme.dfs.core.windows.net/demux", "abfss://box@acme.dfs.core.windows.net", "demux"),
        ("hdfs://node:8020/demux", "hdfs://node:8020", "/demux"),
    ],
)
def test_a_path_is_a_store_and_a_name_in_it(path: str, namespace: str, name: str) -> None:
    assert dataset_at(path) == DatasetName(namespace, name)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [DatasetName("file", "/lake/source")]),
        (
            {
                "source": {"kind": "kafka"},
                "kafka": {"bootstrap_servers": "a:9092, b:9093", "topics": ["events", "late"]},
                "archive": {"path": "s3://old/events"},
            },
            [
                DatasetName("kafka://a:9092", "events"),
                DatasetName("kafka://a:9092", "late"),
                DatasetName("s3://old", "events"),
            ],
        ),
        (
            {"source": {"kind": "kafka"}, "kafka": {"topic_pattern": "events-.*"}},
            [DatasetName("kafka://127.0.0.1:9092", "events-.*")],
        ),
        ({"source": {"kind": "files"}, "archive": {"path": "/old"}}, [DatasetName("file", "/old")]),
    ],
)
def test_bronze_reads_topics_or_a_table_and_the_archive(
    settings: dict[str, object], expected: list[DatasetName]
) -> None:
    assert list(sources(Settings.model_validate({"root": "/lake", **settings}))) == expected


def test_the_columns_of_a_table_have_their_parts_and_comments() -> None:
    move = {"type": "struct", "fields": [{"name": "from", "type": "string", "nullable": True, "metadata": {}}]}
    columns = [
        {"name": "score", "type": "decimal(20,0)", "nullable": True, "metadata": {"comment": "points"}},
        {"name": "moves", "type": {"type": "array", "elementType": move, "containsNull": True}, "metadata": {}},
        {"name": "tags", "type": {"type": "map", "keyType": "string", "valueType": "long"}, "metadata": {}},
    ]
    assert fields_of(json.dumps({"type": "struct", "fields": columns})) == (
        DatasetField("score", "decimal(20,0)", "points"),
        DatasetField(
            "moves", "array", None, (DatasetField("_element", "struct", None, (DatasetField("from", "string"),)),)
        ),
        DatasetField("tags", "map", None, (DatasetField("key", "string"), DatasetField("value", "long"))),
    )

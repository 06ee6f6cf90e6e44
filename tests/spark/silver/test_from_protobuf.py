"""Spark's own decoder by itself: what it does without Python, what it writes, and a game decoded by it."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from demux.core.columns.spark import spark_struct
from demux.core.columns.types import Struct
from demux.core.delta.batch_commit import REFUSED
from demux.core.errors import DecoderUnsuited, RuntimeMissing
from demux.core.names import game_key
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.root.layout import Layout
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.store import SchemaStore
from demux.core.settings.settings import Decoder
from demux.core.tables import BRONZE
from deserializer.decoders import from_protobuf as native
from deserializer.decoders.schema_decision import decide
from deserializer.decoders.select import FromProtobuf, native_decoder
from deserializer.stream.run import deserialize
from tests.support.data.chess import VERSION_1, VERSION_3, compiled, payload
from tests.support.data.messages import payloads
from tests.support.data.protos import CLOSED, PROTO2, PROTO3, WELL_KNOWN, Schema, message_type
from tests.support.data.protos import compiled as descriptor_set_of
from tests.support.spark.registries import every_game
from tests.support.spark.rows import by_spark
from tools.memory_registry import MemoryRegistry

pytestmark = pytest.mark.usefixtures("compiled_plans")


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        (CLOSED, "closed.Few"),
        (PROTO3, "kinds3.Nested"),
        (PROTO3, "kinds3.MapValues"),
        (PROTO2, "kinds2.Packed"),
        (WELL_KNOWN, "known.Inside"),
    ],
    ids=str,
)
def test_what_a_protobuf_library_wrote_never_goes_through_python(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: Schema, name: str
) -> None:
    def refusing(*_: object) -> Any:
        return lambda *_: F.lit(None).cast(native.REPAIRED)

    monkeypatch.setattr(native, "repairing", refusing)
    decisions = decide(Struct(()), {SchemaRef(1): CompiledSchema(1, "game", 1, name, descriptor_set_of(schema))})
    valid = [(1, made) for made in payloads(message_type(schema, name), seed=4, count=100)]
    rows = by_spark(spark, tmp_path, FromProtobuf(tmp_path / "descriptors"), valid, decisions)
    assert [row[REFUSED] for row in rows] == [False] * 100


def test_a_descriptor_is_written_once_under_the_name_of_its_content(spark: SparkSession, tmp_path: Path) -> None:
    first, third = compiled(VERSION_1, 11, 1), compiled(VERSION_3, 13, 3)
    decoder = FromProtobuf(tmp_path / "descriptors")
    nothing = spark.createDataFrame([], spark_struct(BRONZE))
    decoder.rows(nothing, decide(Struct(()), {SchemaRef(11): first}))
    (written,) = (tmp_path / "descriptors").iterdir()
    before = written.stat()
    decoder.rows(nothing, decide(Struct(()), {SchemaRef(11): first, SchemaRef(13): third}))
    assert written.stat() == before
    assert sorted(path.suffix for path in (tmp_path / "descriptors").iterdir()) == [".desc", ".desc"]


@pytest.mark.parametrize(
    ("root", "folder"),
    [
        ("/data/a%20b", Path("/data/a%20b/control/descriptors")),
        ("file:///data/a%20b", Path("/data/a b/control/descriptors")),
        ("data", Path.cwd() / "data/control/descriptors"),
    ],
)
def test_the_descriptors_folder_is_an_absolute_path_under_the_root(root: str, folder: Path) -> None:
    assert native_decoder(has_from_protobuf=True, root=root) == FromProtobuf(folder)


def test_a_root_without_a_local_path_is_named_in_the_reason_against_it() -> None:
    missing = native_decoder(has_from_protobuf=True, root="s3://bucket/data")
    assert isinstance(missing, RuntimeMissing)
    assert missing.message.endswith("from a local path, and the root is s3://bucket/data.")


V1, V3 = compiled(VERSION_1, 1), compiled(VERSION_3, 2)
ROWS: list[tuple[int | None, bytes | None]] = [
    (1, payload(V1, user_name="anna", moves=3)),
    (2, payload(V3, player="bert", moves=-1, board={"blitz": True, "opening": "ruy"}, clocks=[1, 2**40])),
    (2, payload(V3, board={"blitz": True})[:-1]),
    (1, b"\x08\x01"),
    (1, b""),
    (1, None),
    (9, b""),
    (None, b""),
]


def layout_with_bronze(spark: SparkSession, folder: Path, rows: list[tuple[int | None, bytes | None]]) -> Layout:
    layout = Layout(str(folder))
    moment = datetime(2025, 1, 2, tzinfo=timezone.utc)
    blank: dict[str, Any] = {column.name: None for column in BRONZE} | {"game_name": "chess", "timestamp": moment}
    records = [
        {**blank, "schema_id": schema_id, "payload": data, "record_id": f"r{at}", "offset": at}
        for at, (schema_id, data) in enumerate(rows)
    ]
    frame = spark.createDataFrame([tuple(record.values()) for record in records], spark_struct(BRONZE))
    frame.write.format("delta").partitionBy("game_name").save(layout.bronze)
    return layout


def tables(layout: Layout) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Silver and quarantine, without the times of work."""
    passing = {"_decoded_at", "quarantined_at", "query_id"}

    def rows(table: str, key: str) -> list[dict[str, Any]]:
        found = DeltaTable(table).to_pyarrow_table().to_pylist()
        return sorted(({k: v for k, v in row.items() if k not in passing} for row in found), key=lambda row: row[key])

    return rows(layout.silver(game_key("chess")), "_record_id"), rows(layout.quarantine, "record_id")


def registry() -> MemoryRegistry:
    made = MemoryRegistry()
    for text in (VERSION_1, VERSION_3):
        made.register("chess", text, "chess.proto", ())
    return made


def test_a_game_decoded_by_it_has_the_same_silver_and_quarantine(spark: SparkSession, tmp_path: Path) -> None:
    outcomes = []
    for setting in (Decoder.ARROW, Decoder.FROM_PROTOBUF):
        layout = layout_with_bronze(spark, tmp_path / setting.value, ROWS)
        report = deserialize(spark, layout, SchemaStore(spark, layout, every_game(registry())), "chess", setting)
        outcomes.append((report, *tables(layout)))
    assert outcomes[0] == outcomes[1]
    assert [row["_record_id"] for row in outcomes[1][1]] == ["r0", "r1", "r4", "r5"]
    assert len(list((tmp_path / "from_protobuf/control/descriptors").iterdir())) == 2


def test_a_message_that_it_cannot_read_stops_the_game_and_writes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    made = MemoryRegistry()
    text = 'syntax = "proto3"; import "google/protobuf/struct.proto"; message M { google.protobuf.Struct any = 1; }'
    made.register("chess", text, "chess.proto", ())
    layout = layout_with_bronze(spark, tmp_path, [(1, b"")])
    store = SchemaStore(spark, layout, every_game(made))
    with pytest.raises(DecoderUnsuited, match="schema 1: field any becomes JSON text"):
        deserialize(spark, layout, store, "chess", Decoder.FROM_PROTOBUF)
    assert not Path(layout.silver(game_key("chess"))).exists()
    assert deserialize(spark, layout, store, "chess", Decoder.AUTO).rows_silver == 1

"""The comments of a `.proto` file in a silver table's own metadata, from its first commit on."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from demux.core.columns.spark import columns_of_spark, spark_struct
from demux.core.columns.types import Column
from demux.core.delta.batch_commit import REFUSED
from demux.core.protobuf.schema.comments import inside
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.schemas.ref import SchemaRef
from demux.core.storage.files import Storage
from demux.core.tables import SILVER_ORIGIN
from deserializer.decoders.arrow import INPUT
from deserializer.decoders.schema_decision import Decisions
from deserializer.decoders.select import RowDecoder
from deserializer.silver.evolve import silver_rows
from deserializer.silver.fit import fit as fitted
from deserializer.silver.spark_table import SilverBySpark
from tests.support.data.chess import compiled, payload
from tests.support.flow import crash

FIRST = """syntax = "proto3";
// It's a `move` of ${user} \\\\ 象棋.
message Chess {
  string player = 1; // who moved
  Board board = 2; // where
  repeated Board boards = 3;
  map<string, Board> by_name = 4;
  message Board {
    bool blitz = 1; // fast
  }
}"""
SECOND = (
    FIRST.replace("It's a", "One")
    .replace("// where", "")
    .replace("// fast", "// very fast\n    string opening = 2; // by its name")
    .replace("map<", "// how long\n  int64 clock = 5;\n  map<")
)
PLAIN = 'syntax = "proto3"; message Chess { string player = 1; }'
V1, V2 = compiled(FIRST, 11, 1), compiled(SECOND, 12, 2)
ORIGIN = {column.name: column.comment for column in SILVER_ORIGIN}
SCHEMA_ID = ORIGIN["_schema_id"]


@pytest.fixture
def table(tmp_path: Path) -> str:
    # a folder that must be quoted
    return str(tmp_path / "it's `a` folder" / "table")


def fit(spark: SparkSession, table: str, *schemas: CompiledSchema) -> Decisions:
    answers = {SchemaRef(schema.schema_id): schema for schema in schemas}
    return fitted(spark, Storage(), SilverBySpark(spark, Storage(), table), answers)


def write(spark: SparkSession, table: str, decisions: Decisions, schema: CompiledSchema, decoder: RowDecoder) -> None:
    position = ["t", "t", 0, 0, None, "t/0/0"]
    row = [schema.schema_id, None, None, payload(schema, player="ann"), *position]
    frame = spark.createDataFrame([tuple(row)], spark_struct(INPUT))
    rows = silver_rows(frame, decisions, decoder)
    rows.where(f"NOT {REFUSED}").drop(REFUSED).write.format("delta").mode("append").save(table)


def comments(spark: SparkSession, table: str) -> dict[str, str]:
    """The comments of the payload columns by dotted path, and the one of `_schema_id`."""
    found = _by_path(columns_of_spark(spark.read.format("delta").load(table).schema))
    assert {name: text for name, text in found.items() if name in ORIGIN and name != "_schema_id"} == {
        name: text for name, text in ORIGIN.items() if name != "_schema_id"
    }
    return {name: text for name, text in found.items() if name not in ORIGIN or name == "_schema_id"}


def _by_path(columns: Iterable[Column], above: str = "") -> dict[str, str]:
    result: dict[str, str] = {}
    for column in columns:
        result |= {above + column.name: column.comment} if column.comment else {}
        result |= _by_path(inside(column.type), f"{above}{column.name}.")
    return result


def mark(version: int, schema_id: int) -> str:
    return f"{SCHEMA_ID} The comments of this table are those of version {version}, schema {schema_id}."


def test_a_new_table_has_all_comments_in_its_first_commit(spark: SparkSession, table: str, decoder: RowDecoder) -> None:
    decisions = fit(spark, table, V1)
    made = DeltaTable(table)
    assert (made.version(), made.metadata().description) == (0, "It's a `move` of ${user} \\\\ 象棋.")
    wanted = {
        "player": "who moved",
        "board": "where",
        "board.blitz": "fast",
        "boards.blitz": "fast",
        "by_name.blitz": "fast",
        "_schema_id": mark(1, 11),
    }
    assert comments(spark, table) == wanted
    found = SilverBySpark(spark, Storage(), table)
    assert (found.columns, found.message) == (decisions.columns, "Chess")
    write(spark, table, decisions, V1, decoder)
    assert (comments(spark, table), DeltaTable(table).version()) == (wanted, 1)
    assert [row["player"] for row in DeltaTable(table).to_pyarrow_table().to_pylist()] == ["ann"]


def test_a_table_whose_schema_says_nothing_is_made_with_the_origins_comments(
    spark: SparkSession, table: str, decoder: RowDecoder
) -> None:
    schema = compiled(PLAIN, 11, 1)
    decisions = fit(spark, table, schema)
    found = SilverBySpark(spark, Storage(), table)
    assert (found.columns, found.message) == (decisions.columns, "Chess")
    write(spark, table, decisions, schema, decoder)
    made = DeltaTable(table)
    assert made.version() == 1
    assert made.metadata().description is None
    assert comments(spark, table) == {"_schema_id": SCHEMA_ID}


def test_comments_follow_a_newer_version_and_no_older_one(spark: SparkSession, table: str, lane: str) -> None:
    fit(spark, table, V1)
    decisions = fit(spark, table, V1, V2)
    wanted = {
        "player": "who moved",
        # the newer version says nothing of it
        "board": "where",
        "board.blitz": "very fast",
        "board.opening": "by its name",
        "boards.blitz": "very fast",
        "boards.opening": "by its name",
        "by_name.blitz": "very fast",
        "by_name.opening": "by its name",
        "clock": "how long",
        "_schema_id": mark(2, 12),
    }
    assert comments(spark, table) == wanted
    changed = DeltaTable(table)
    assert changed.metadata().description == "One `move` of ${user} \\\\ 象棋."
    # made, columns added, one moved before the origin, then the comments: of the table, of the columns
    assert changed.version() == {"current": 4, "oldest": 7}[lane]
    for schemas in ([V1], [V2], [V1, V2]):
        assert fit(spark, table, *schemas).columns == decisions.columns
    assert (DeltaTable(table).version(), comments(spark, table)) == (changed.version(), wanted)
    found = SilverBySpark(spark, Storage(), table)
    assert (found.columns, found.message) == (decisions.columns, "Chess")


def test_a_crash_between_the_statements_is_made_good_by_the_next_batch(spark: SparkSession, table: str) -> None:
    newer = compiled(FIRST.replace("It's a", "One").replace("who moved", "who moves"), 12, 2)
    fit(spark, table, V1)
    with crash.before_sql("ALTER TABLE"), pytest.raises(crash.Crash):
        fit(spark, table, newer)
    assert DeltaTable(table).metadata().description == "One `move` of ${user} \\\\ 象棋."
    assert [comments(spark, table)[name] for name in ("player", "_schema_id")] == ["who moved", mark(1, 11)]
    fit(spark, table, newer)
    assert [comments(spark, table)[name] for name in ("player", "_schema_id")] == ["who moves", mark(2, 12)]


def test_an_emptied_table_gets_its_comments_again(spark: SparkSession, table: str) -> None:
    fit(spark, table, V1)
    before = comments(spark, table)
    nothing = spark.createDataFrame([], spark_struct(SILVER_ORIGIN))
    nothing.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(table)
    fit(spark, table, V1)
    assert comments(spark, table) == before


def test_a_comment_made_by_hand_stays_until_a_newer_version_says_otherwise(spark: SparkSession, table: str) -> None:
    fit(spark, table, V1)
    path = table.replace("`", "``")
    for column in ("player", "boards"):
        spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN {column} COMMENT 'by hand'")
    fit(spark, table, V1)
    assert [comments(spark, table)[name] for name in ("player", "boards")] == ["by hand", "by hand"]
    fit(spark, table, V2)
    assert [comments(spark, table)[name] for name in ("player", "boards")] == ["who moved", "by hand"]


def test_rows_do_not_wait_for_a_comment_that_is_refused(
    spark: SparkSession, table: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit(spark, table, V1)
    newer = compiled(FIRST.replace("who moved", "who moves"), 12, 2)
    _ask_for_more(table)
    monkeypatch.setattr(logging.getLogger("demux"), "propagate", True)
    decisions = fit(spark, table, newer)
    assert list(decisions.writers) == [SchemaRef(12)]
    assert "A table's comments cannot follow its newest schema" in caplog.text
    assert comments(spark, table)["player"] == "who moved"


def test_a_message_of_5000_commented_fields_is_made_at_once(spark: SparkSession, table: str) -> None:
    fields = "\n".join(f"int32 f{n} = {n}; // the field {n}" for n in range(1, 5001))
    schema = compiled(f'syntax = "proto3"; message Chess {{\n{fields}\n}}', 11, 1)
    decisions = fit(spark, table, schema)
    found = comments(spark, table)
    assert (len(found), found["f5000"], DeltaTable(table).version()) == (5001, "the field 5000", 0)
    assert len(decisions.columns.columns) == 5000


def _ask_for_more(table: str) -> None:
    """Let the table ask something of its writers that no Spark here knows; readers do not mind."""
    protocol: Mapping[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["unheardOf"]}
    Path(table, "_delta_log", f"{DeltaTable(table).version() + 1:020}.json").write_text(
        json.dumps({"protocol": protocol}) + "\n", encoding="utf-8"
    )

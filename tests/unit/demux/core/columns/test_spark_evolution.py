"""A table's schema with further columns."""

from __future__ import annotations

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from demux.core.columns.spark import COMMENT, MESSAGE, NUMBER, columns_of_spark, spark_struct, with_columns
from demux.core.columns.types import Array, Column, ColumnType, Map, Primitive, Struct

INT, BIGINT, STRING = Primitive.INT, Primitive.BIGINT, Primitive.STRING


def move(*names: str) -> Struct:
    return Struct(tuple(Column(name, STRING, number) for number, name in enumerate(names, 1)))


def table(*columns: Column) -> StructType:
    return spark_struct(Struct(columns))


ID = Column("_id", STRING, comment="where it came from")


def test_new_columns_stand_where_they_are_wanted_and_those_of_the_table_alone_come_first() -> None:
    now = table(Column("player", STRING, 1), Column("of_the_owner", INT), ID)
    wanted = Struct((Column("player", STRING, 1), Column("clock", BIGINT, 2, "in ms"), ID))
    schema = with_columns(now, wanted)
    assert schema is not None
    assert schema.fieldNames() == ["of_the_owner", "player", "clock", "_id"]
    assert schema["clock"].metadata == {NUMBER: 2, COMMENT: "in ms"}
    assert with_columns(schema, wanted) == schema


@pytest.mark.parametrize("around", [lambda inner: inner, Array, lambda inner: Map(STRING, Array(inner))])
def test_new_columns_come_into_messages_lists_and_maps(around: type[Array]) -> None:
    now, wanted = (Column("moves", around(move(*names))) for names in (("a",), ("a", "b")))
    schema = with_columns(table(now, ID), Struct((wanted, ID)))
    assert schema is not None
    assert columns_of_spark(schema) == Struct((wanted, ID))


def test_columns_that_are_there_keep_what_they_say_unless_comments_are_asked_for() -> None:
    field = StructField("Clock", LongType(), nullable=False, metadata={COMMENT: "old", "delta.owner": "x", NUMBER: 3})
    wanted = Struct((Column("clock", BIGINT, 3, "new"), Column("silent", INT, 4)))
    kept, said = (with_columns(StructType([field]), wanted, comments=comments) for comments in (False, True))
    assert kept is not None
    assert said is not None
    assert kept.fields[0] == field
    assert said.fields[0] == StructField("Clock", LongType(), False, {**field.metadata, COMMENT: "new"})
    silent = with_columns(said, Struct((Column("clock", BIGINT, 3), Column("silent", INT, 4))), comments=True)
    assert silent == said


def test_the_first_column_says_which_message_the_table_holds_once() -> None:
    now, wanted = table(Column("a", INT, 1)), Struct((Column("a", INT, 1), Column("b", INT, 2)))
    schema = with_columns(now, wanted, "game.v1.Event")
    assert schema is not None
    assert [field.metadata.get(MESSAGE) for field in schema.fields] == ["game.v1.Event", None]
    assert with_columns(schema, wanted, "another.Event") == schema


@pytest.mark.parametrize(
    ("now", "wanted"),
    [
        (INT, BIGINT),
        (Array(INT), Array(BIGINT)),
        (Map(STRING, INT), Map(STRING, BIGINT)),
        (Map(INT, INT), Map(STRING, INT)),
        (Struct((Column("x", INT),)), Struct((Column("x", BIGINT),))),
        (INT, Array(INT)),
        (Array(INT), INT),
        (Array(INT), Map(STRING, INT)),
    ],
)
def test_another_type_is_for_whoever_writes_rows_anew(now: ColumnType, wanted: ColumnType) -> None:
    assert with_columns(table(Column("x", now), ID), Struct((Column("x", wanted), ID))) is None

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.columns.schema_merge import Alignment, align, fits, widens
from demux.core.columns.types import EMPTY_STRUCT, Array, Column, ColumnType, Map, Primitive, Struct
from tests.support.data.column_types import column_types, structs

INT, BIGINT, STRING = Primitive.INT, Primitive.BIGINT, Primitive.STRING


def struct(**columns: tuple[int, ColumnType]) -> Struct:
    return Struct(tuple(Column(name, column_type, number) for name, (number, column_type) in columns.items()))


def levels(column_type: ColumnType) -> Iterator[Struct]:
    """Every struct in the type, itself included."""
    match column_type:
        case Struct(columns):
            yield column_type
            for column in columns:
                yield from levels(column.type)
        case Array(inside) | Map(_, inside):
            yield from levels(inside)


def holds(table: ColumnType, writer: ColumnType) -> bool:
    """Whether the writer's values, at every level, have a column of their own number in the table."""
    match table, writer:
        case Struct(), Struct():
            mine = table.by_number()
            return all(n in mine and holds(mine[n].type, c.type) for n, c in writer.by_number().items())
        case Array(mine_), Array(theirs):
            return holds(mine_, theirs)
        case Map(key, mine_), Map(other, theirs):
            return fits(other, key) and holds(mine_, theirs)
        case Primitive(), Primitive():
            return fits(writer, table)
    return False


def keeps(after: ColumnType, before: ColumnType) -> bool:
    """Whether what was there is still there: names, numbers and types, and added columns come last."""
    match after, before:
        case Struct(), Struct():
            pairs = zip(after, before, strict=False)
            same = all((a.name, a.number) == (b.name, b.number) and keeps(a.type, b.type) for a, b in pairs)
            return len(after.columns) >= len(before.columns) and same
        case Array(a), Array(b):
            return keeps(a, b)
        case Map(key, a), Map(other, b):
            return keeps(key, other) and keeps(a, b)
    return after is before or (before, after) in WIDENS


def test_an_empty_table_takes_the_writers_columns() -> None:
    writer = struct(a=(1, INT), b=(2, struct(c=(1, STRING))))
    assert align(Struct(()), writer) == Alignment(writer, ("a", "b"), ())


def test_added_columns_come_last_at_their_level_in_the_writers_order() -> None:
    table = struct(z=(9, INT), inner=(2, struct(x=(1, INT))))
    writer = struct(a=(1, INT), inner=(2, struct(w=(3, STRING), x=(1, INT), v=(2, STRING))), c=(3, INT))
    aligned = align(table, writer)
    inner = struct(x=(1, INT), w=(3, STRING), v=(2, STRING))
    assert aligned.columns == struct(z=(9, INT), inner=(2, inner), a=(1, INT), c=(3, INT))
    assert aligned.added == ("inner.w", "inner.v", "a", "c")


@pytest.mark.parametrize(
    ("wrap", "path"),
    [
        (lambda inner: Array(inner), "list.element.new"),
        (lambda inner: Map(STRING, inner), "list.value.new"),
        (lambda inner: Array(struct(deep=(1, inner))), "list.element.deep.new"),
    ],
)
def test_columns_are_added_inside_lists_and_maps(wrap: object, path: str) -> None:
    assert callable(wrap)
    old, new = struct(x=(1, INT)), struct(x=(1, INT), new=(2, STRING))
    aligned = align(struct(list=(1, wrap(old))), struct(list=(1, wrap(new))))
    assert aligned == Alignment(struct(list=(1, wrap(new))), (path,), ())


def test_a_renamed_field_keeps_its_column_and_a_new_field_of_the_old_name_gets_another() -> None:
    table = struct(score=(1, INT))
    assert align(table, struct(points=(1, INT))) == Alignment(table, (), ())
    both = align(table, struct(points=(1, INT), Score=(2, STRING)))
    assert both.columns == struct(score=(1, INT), Score__2=(2, STRING))


def test_an_added_column_takes_no_reserved_name_at_the_top_but_may_inside() -> None:
    writer = struct(_Schema_Id=(4, INT), inner=(5, struct(_schema_id=(1, INT))))
    aligned = align(struct(a=(1, INT)), writer, frozenset({"_schema_id"}))
    assert aligned.columns == struct(a=(1, INT), _Schema_Id__4=(4, INT), inner=(5, struct(_schema_id=(1, INT))))


WIDENS = {
    (INT, BIGINT),
    (INT, Primitive.DECIMAL_20_0),
    (BIGINT, Primitive.DECIMAL_20_0),
    (Primitive.FLOAT, Primitive.DOUBLE),
}


@pytest.mark.parametrize("table", list(Primitive))
@pytest.mark.parametrize("writer", list(Primitive))
def test_a_number_goes_into_a_wider_column_only_where_none_is_lost(writer: Primitive, table: Primitive) -> None:
    aligned = align(struct(n=(1, table)), struct(n=(1, writer)))
    wide_enough = writer is table or (writer, table) in {*WIDENS, (INT, Primitive.DOUBLE)}
    wider = (table, writer) in WIDENS
    assert (fits(writer, table), widens(table, writer)) == (wide_enough, wider)
    assert bool(aligned.conflicts) is not (wide_enough or wider)
    assert (aligned.columns, aligned.widened) == (struct(n=(1, writer if wider else table)), ("n",) if wider else ())


def test_columns_are_widened_at_every_level_and_told_by_path() -> None:
    def shape(number: Primitive, real: Primitive, **more: tuple[int, ColumnType]) -> Struct:
        inner = struct(b=(1, Array(number)), m=(2, Map(number, real)), **more)
        return struct(a=(1, number), one=(2, inner), many=(3, Array(inner)))

    wider = shape(BIGINT, Primitive.DOUBLE, new=(3, INT))
    aligned = align(shape(INT, Primitive.FLOAT), wider)
    inner = ("b.element", "m.key", "m.value")
    paths = ("a", *(f"one.{path}" for path in inner), *(f"many.element.{path}" for path in inner))
    assert aligned == Alignment(wider, ("one.new", "many.element.new"), (), paths)
    assert (aligned.changes[0], aligned.changes[-1]) == (
        "makes column a BIGINT",
        "adds column many.element.new INT",
    )


def test_nothing_is_widened_where_another_field_is_in_conflict() -> None:
    table = struct(a=(1, INT), b=(2, STRING))
    aligned = align(table, struct(a=(1, BIGINT), b=(2, INT)))
    assert (aligned.columns, aligned.widened, len(aligned.conflicts)) == (table, (), 1)


def test_every_conflict_is_named_with_its_path_and_nothing_is_added() -> None:
    table = struct(a=(1, INT), inner=(2, struct(b=(1, Array(STRING)), m=(2, Map(INT, INT)))), s=(4, struct(x=(1, INT))))
    writer = struct(
        a=(1, STRING), inner=(2, struct(b=(1, STRING), m=(2, Map(STRING, INT)))), new=(3, INT), s=(4, STRING)
    )
    aligned = align(table, writer)
    assert aligned.conflicts == (
        "Column a is INT, the schema writes STRING",
        "Column inner.b is ARRAY<STRING>, the schema writes STRING",
        "Column inner.m is MAP<INT, INT>, the schema writes MAP<STRING, INT>",
        "Column s is STRUCT<x: INT>, the schema writes STRING",
    )
    assert (aligned.columns, aligned.added) == (table, ())


def test_a_map_with_wider_keys_takes_narrower_ones() -> None:
    table = struct(m=(1, Map(BIGINT, STRING)))
    assert align(table, struct(m=(1, Map(INT, STRING)))) == Alignment(table, (), ())


def test_a_message_that_gets_its_first_field_keeps_its_placeholder() -> None:
    aligned = align(struct(e=(1, EMPTY_STRUCT)), struct(e=(1, struct(_empty=(1, INT)))))
    assert aligned.columns == struct(e=(1, Struct((*EMPTY_STRUCT.columns, Column("_empty__1", INT, 1)))))
    assert aligned.added == ("e._empty__1",)


def test_a_message_that_lost_its_last_field_adds_no_placeholder() -> None:
    table = struct(e=(1, struct(x=(1, INT))))
    assert align(table, struct(e=(1, EMPTY_STRUCT))) == Alignment(table, (), ())


@pytest.mark.thorough
@given(structs())
def test_a_table_aligned_with_itself_stays_as_it_is(table: Struct) -> None:
    assert align(table, table) == Alignment(table, (), ())


@pytest.mark.thorough
@given(structs(), structs())
def test_aligning_twice_adds_nothing_the_second_time(table: Struct, writer: Struct) -> None:
    once = align(table, writer)
    again = align(once.columns, writer)
    assert again == Alignment(once.columns, (), once.conflicts)


@pytest.mark.thorough
@given(structs(), structs(), structs())
def test_what_was_aligned_still_holds_after_another_writer(table: Struct, first: Struct, second: Struct) -> None:
    once = align(table, first)
    twice = align(once.columns, second)
    assert keeps(once.columns, table)
    assert keeps(twice.columns, once.columns)
    assert bool(once.conflicts) or holds(twice.columns, first)


@pytest.mark.thorough
@given(structs(), structs(), st.frozensets(st.text("ab", min_size=1, max_size=2)))
def test_numbers_and_names_stay_unique_at_every_level(table: Struct, writer: Struct, reserved: frozenset[str]) -> None:
    aligned = align(table, writer, reserved)
    for level in levels(aligned.columns):
        numbers = [column.number for column in level if column.number]
        assert len(numbers) == len(set(numbers))
        assert len({column.name.lower() for column in level}) == len(level.columns)
    new = {column.name.lower() for column in aligned.columns} - {column.name.lower() for column in table}
    assert not new & reserved


@pytest.mark.thorough
@given(structs(), structs())
def test_either_every_value_has_a_place_or_a_conflict_is_named_and_nothing_changed(
    table: Struct, writer: Struct
) -> None:
    aligned = align(table, writer)
    if aligned.conflicts:
        assert (aligned.columns, aligned.added) == (table, ())
    else:
        assert holds(aligned.columns, writer)


@given(column_types(), column_types())
def test_a_column_of_another_kind_is_a_conflict_and_never_guessed(table: ColumnType, writer: ColumnType) -> None:
    aligned = align(struct(c=(1, table)), struct(c=(1, writer)))
    if type(table) is not type(writer):
        assert len(aligned.conflicts) == 1

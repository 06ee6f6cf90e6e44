"""Counting rows as they come, in any batches: the same as counting them one by one."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.causes import Cause, Stage
from demux.core.columns.arrow import arrow_fields
from demux.core.tables import QUARANTINE
from demux.operations.quarantine.filter import QuarantineFilter
from demux.operations.quarantine.summary import Grouping, GroupKey, NewestRows, RowLocation, total

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=timezone.utc)
SCHEMA = pa.schema(arrow_fields(QUARANTINE))
TIMES = st.none() | st.integers(0, 3).map(lambda hours: NOW + timedelta(hours=hours))


def row(
    stage: str = "silver",
    cause: str = "UNKNOWN_SCHEMA",
    game: str | None = "chess",
    schema_id: int | None = 1,
    guid: str | None = None,
    at: datetime | None = NOW,
) -> dict[str, Any]:
    ref = {"schema_id": schema_id, "schema_guid": guid}
    return {"stage": stage, "cause": cause, "game_name": game, "quarantined_at": at, "record_id": "t/0/1", **ref}


ROWS = st.lists(
    st.builds(
        row,
        st.sampled_from(["bronze", "silver"]),
        st.sampled_from(["UNKNOWN_SCHEMA", "MALFORMED_PAYLOAD"]),
        st.sampled_from(["chess", "go", None]),
        st.integers(1, 3) | st.none(),
        st.sampled_from([None, "g1"]),
        TIMES,
    ),
    max_size=30,
)
CHOICES = st.builds(
    QuarantineFilter,
    st.sampled_from([None, "chess"]),
    st.sampled_from([(), (Cause.UNKNOWN_SCHEMA,)]),
    st.sampled_from([None, *Stage]),
    TIMES,
    TIMES,
)


def batches(rows: list[dict[str, Any]], size: int) -> list[tuple[pa.RecordBatch, RowLocation]]:
    """The rows in batches of this size, two to a piece."""
    parts = [rows[at : at + size] for at in range(0, len(rows), size)]
    return [
        (pa.RecordBatch.from_pylist(part, SCHEMA), RowLocation(number // 2, (number % 2) * size))
        for number, part in enumerate(parts)
    ]


def chosen(one: dict[str, Any], choice: QuarantineFilter) -> bool:
    at = one["quarantined_at"]
    return (
        (choice.game is None or (one["game_name"], one["stage"]) == (choice.game, "silver"))
        and (choice.game is not None or choice.stage is None or one["stage"] == choice.stage.value)
        and (not choice.causes or Cause(one["cause"]) in choice.causes)
        and (choice.since is None or (at is not None and at >= choice.since))
        and (choice.before is None or (at is not None and at < choice.before))
    )


def key(one: dict[str, Any]) -> GroupKey:
    if one["stage"] == "bronze":
        return GroupKey("bronze", one["cause"], None)
    guid = one["schema_guid"]
    return GroupKey("silver", one["cause"], one["game_name"], None if guid else one["schema_id"], guid)


def place(position: int, size: int) -> RowLocation:
    number, at = divmod(position, size)
    return RowLocation(number // 2, (number % 2) * size + at)


def time_of(one: dict[str, Any]) -> datetime:
    return one["quarantined_at"] or datetime.min.replace(tzinfo=timezone.utc)


@given(ROWS, CHOICES, st.integers(1, 8))
def test_groups_are_what_counting_row_by_row_gives(
    rows: list[dict[str, Any]], choice: QuarantineFilter, size: int
) -> None:
    counting = Grouping(choice)
    for batch, begin in batches(rows, size):
        counting.add(batch, begin)
    expected: defaultdict[GroupKey, list[tuple[datetime, RowLocation]]] = defaultdict(list)
    for position, one in enumerate(rows):
        if chosen(one, choice):
            expected[key(one)].append((time_of(one), place(position, size)))
    assert {group.key: (group.rows, group.newest) for group in counting.groups} == {
        one: (len(found), max(found)[1]) for one, found in expected.items()
    }
    known = {one: [at for at, _ in found if at.year > 1] for one, found in expected.items()}
    assert {group.key: (group.first, group.last) for group in counting.groups} == {
        one: (min(times, default=None), max(times, default=None)) for one, times in known.items()
    }
    sizes = [group.rows for group in counting.groups]
    assert sizes == sorted(sizes, reverse=True)


@given(ROWS, CHOICES, st.integers(1, 8), st.integers(1, 5))
def test_the_newest_rows_are_found_and_of_the_same_time_the_first_ones(
    rows: list[dict[str, Any]], choice: QuarantineFilter, size: int, most: int
) -> None:
    found = NewestRows(choice, most)
    for batch, begin in batches(rows, size):
        found.add(batch, begin)
    meant = [position for position, one in enumerate(rows) if chosen(one, choice)]
    newest = sorted(meant, key=lambda position: (-time_of(rows[position]).timestamp(), position))[:most]
    assert found.rows == len(meant)
    assert found.places == tuple(place(position, size) for position in newest)


@given(ROWS, st.integers(1, 8))
def test_groups_beyond_a_number_are_put_together_and_none_is_left_out(rows: list[dict[str, Any]], size: int) -> None:
    counting = Grouping(QuarantineFilter(), most=2)
    for batch, begin in batches(rows, size):
        counting.add(batch, begin)
    assert total(counting.groups) == len(rows)
    # of each stage, cause and game one more
    assert len(counting.groups) <= 2 + 8


def test_so_many_schema_ids_at_once_are_one_group() -> None:
    counting = Grouping(QuarantineFilter(), most=2)
    counting.add(pa.RecordBatch.from_pylist([row(schema_id=number) for number in range(9)], SCHEMA), RowLocation(0, 0))
    assert [(group.key.others, group.rows, group.newest) for group in counting.groups] == [(True, 9, RowLocation(0, 8))]


@pytest.mark.parametrize("most", [1_000, 1_500])
def test_many_schema_ids_are_few_groups(most: int) -> None:
    counting = Grouping(QuarantineFilter(), most)
    for number in range(10):
        columns = {name: ["x"] * 1000 for name in ("stage", "cause", "game_name")}
        ids = range(number * 1000, (number + 1) * 1000)
        arrays = [
            pa.array(ids, pa.int32())
            if field.name == "schema_id"
            else pa.array(columns.get(field.name), field.type)
            if field.name in columns
            else pa.nulls(1000, field.type)
            for field in SCHEMA
        ]
        arrays[0] = pa.array(["silver"] * 1000)
        counting.add(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA), RowLocation(number, 0))
    assert len(counting.groups) == most + 1
    assert counting.groups[0].key == GroupKey("silver", "x", "x", None, None, others=True)
    assert counting.groups[0].rows == 10_000 - most

"""Thousands of bent payloads: the decoder accepts what the reference accepts, with equal rows. Seeded and bounded."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf.unknown_fields import UnknownFieldSet

from demux.core.columns.types import Array, ColumnType, Map, Primitive, Struct
from demux.core.protobuf.decode.decoder import PayloadDecoder, decoder_of
from demux.core.protobuf.decode.reference_parser import MalformedRow
from demux.core.protobuf.schema.column_mapping import is_map
from demux.core.protobuf.schema.descriptor_pool import is_repeated
from tests.support.data.messages import payloads
from tests.support.data.mutations import START, mutated
from tests.support.data.protos import CASES, Schema, compiled, message_type
from tests.support.oracle import Micros, arrow_rows, difference, oracle_row

# of each message; all of them together take about five seconds
BENT = 200
# of so many each, so that all of them together are some millions
ROUNDS = 300


def typed(value: Any, column_type: ColumnType) -> Any:
    """A value of the reference's row as the oracle would say it."""
    match column_type:
        case _ if value is None:
            return None
        case Array(element):
            return [typed(item, element) for item in value]
        case Map(key, inside):
            return {typed(name, key): typed(item, inside) for name, item in value}
        case Struct(columns):
            return {column.name: typed(value[column.name], column.type) for column in columns}
        case Primitive.TIMESTAMP:
            return Micros(value)
        case Primitive.DECIMAL_20_0:
            return Decimal(value)
    return value


def bent(schema: Schema, message: str, seed: int, count: int) -> list[bytes]:
    cls: Any = message_type(schema, message)
    rng = random.Random(f"{message} {seed}")
    straight = payloads(cls, seed, 20)
    return [mutated(rng.choice(straight), cls.DESCRIPTOR, rng) for _ in range(count)]


def judged(by: PayloadDecoder, made: list[bytes]) -> list[tuple[Any, str | None]]:
    """What the reference makes of each payload: its row, or its sentence."""
    verdicts: list[tuple[Any, str | None]] = []
    for payload in made:
        try:
            verdicts.append((typed(by._reference.row(payload), by.columns), None))
        except MalformedRow as refused:
            verdicts.append((None, str(refused)))
    return verdicts


@pytest.mark.thorough
@pytest.mark.parametrize(("schema", "message"), CASES)
def test_the_decoder_accepts_what_the_reference_accepts_with_equal_rows(schema: Schema, message: str) -> None:
    require_agreement(schema, message, seed=21)


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("schema", "message"), CASES)
def test_so_it_does_with_many_more(schema: Schema, message: str, seed: int) -> None:
    for round_ in range(ROUNDS):
        require_agreement(schema, message, seed * ROUNDS + round_)


def require_agreement(schema: Schema, message: str, seed: int) -> None:
    """Bend payloads of a message, and compare what the decoder and the reference make of them."""
    by = decoder_of(compiled(schema), message)
    made = bent(schema, message, seed, count=BENT)
    decoded, verdicts = by.decode(made), judged(by, made)
    assert sorted([*decoded.good, *(position for position, _ in decoded.bad)]) == list(range(BENT))
    assert dict(decoded.bad) == {at: sentence for at, (_, sentence) in enumerate(verdicts) if sentence is not None}
    names = [column.name for column in by.columns]
    rows = arrow_rows(decoded.columns, names) if names else [{} for _ in decoded.good]
    differences = (
        (made[at].hex(), difference(verdicts[at][0], row)) for at, row in zip(decoded.good, rows, strict=True)
    )
    assert [one for one in differences if one[1] is not None] == []


@pytest.mark.parametrize(("schema", "message"), CASES)
def test_what_is_accepted_is_what_the_column_rules_say(schema: Schema, message: str) -> None:
    cls: Any = message_type(schema, message)
    by = decoder_of(compiled(schema), message)
    for payload, (row, sentence) in zip(made := bent(schema, message, 22, 40), judged(by, made), strict=True):
        if sentence is None:
            parsed = cls.FromString(payload)
            assert difference(oracle_row(parsed, cls.DESCRIPTOR), listed(row)) is None
            rescued = cls.FromString(by.leftover(payload, by.columns) or b"")
            assert Counter(unknown_fields(parsed)) - Counter(unknown_fields(rescued)) == Counter()


def unknown_fields(message: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """What `google.protobuf` did not take from the wire, and where it was."""
    fields: Any = UnknownFieldSet(message)
    for field in fields:
        # the order inside an entry of a map is not kept
        data = sorted(field.data) if isinstance(field.data, bytes) else field.data
        yield (*path, field.field_number, field.wire_type, str(data if field.wire_type != START else ""))
    for field, value in type(message).ListFields(message):
        if field.message_type is None or field.message_type.full_name == "google.protobuf.Any":
            continue
        if is_map(field):
            inside = value.items() if field.message_type.fields_by_number[2].message_type else ()
        else:
            inside = enumerate(value) if is_repeated(field) else [(0, value)]
        for at, part in inside:
            yield from unknown_fields(part, (*path, field.number, at))


def listed(row: Any) -> Any:
    """The row with its maps as pairs, which is what `difference` compares with."""
    match row:
        case dict():
            return {name: listed(value) for name, value in row.items()}
        case list():
            return [listed(value) for value in row]
    return row

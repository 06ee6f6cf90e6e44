"""The conditions of the `from_protobuf` decoder, as Spark SQL over the struct that it reads. Pure text.

The struct has a field `f<number>` for each field of the shape (`lowered_descriptor`): NULL where a singular field
is not on the wire, its value where it is; lists and maps are never NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from google.protobuf.descriptor_pool import DescriptorPool

from demux.core.protobuf.decode.reference_parser import MAX_NANOS, MAX_SECONDS, MIN_SECONDS
from demux.core.protobuf.schema.column_mapping import (
    Cardinality,
    Enumeration,
    FieldMapping,
    FieldPresence,
    Message,
    TimestampValue,
    Value,
)

# message name -> the members' numbers of each of its oneofs
Oneofs = Mapping[str, tuple[tuple[int, ...], ...]]

# yields conditions on one value: its SQL, what it is, how many lambdas stand around it
_Conditions = Callable[[str, Value, int], Iterator[str]]


def canonical_sql(message: str, shape: Message, oneofs: Oneofs) -> str:
    """Return a condition that holds when the struct says all that every parser reads from the same bytes.

    It is to be asked together with "written again, the struct gives the same bytes", and asks for what the lowered
    descriptor leaves open: distinct map keys, at most one member of a oneof, nothing in a message without fields, a
    name for each number of a closed enum.
    """

    def conditions(sql: str, value: Value, depth: int) -> Iterator[str]:
        match value:
            case Message(fields=()):
                yield f"octet_length({sql}) = 0"
            case Message(full_name, fields):
                for members in oneofs[full_name]:
                    yield f"{' + '.join(f'IF({sql}.f{number} IS NULL, 0, 1)' for number in members)} <= 1"
                for field in fields:
                    path = f"{sql}.f{field.number}"
                    if field.cardinality is Cardinality.MAP:
                        yield f"size(array_distinct(map_keys({path}))) = size({path})"
                    yield from _on_each(path, field, depth, conditions)
            case Enumeration(names, is_closed=True):
                yield f"{sql} IN ({', '.join(str(number) for number, _ in names)})"
            case _:
                pass

    return _all(conditions(message, shape, 0))


def lawful_sql(message: str, shape: Message) -> str:
    """Return a condition that is true when the message is set, is complete, and each time has a place in its column."""

    def conditions(sql: str, value: Value, depth: int) -> Iterator[str]:
        match value:
            case TimestampValue():
                yield f"coalesce({sql}.f1, 0L) BETWEEN {MIN_SECONDS}L AND {MAX_SECONDS}L"
                yield f"coalesce({sql}.f2, 0) BETWEEN 0 AND {MAX_NANOS}"
            case Message(_, fields):
                for field in fields:
                    path = f"{sql}.f{field.number}"
                    if field.presence is FieldPresence.REQUIRED:
                        yield f"{path} IS NOT NULL"
                    yield from _on_each(path, field, depth, conditions)
            case _:
                pass

    return _all([f"{message} IS NOT NULL", *conditions(message, shape, 0)])


def rewritable_sql(message: str, shape: Message) -> str:
    """Return the struct with NULL for each empty packed list, which `to_protobuf` would write as an empty field."""
    return _rewritable(message, shape, 0)


def oneofs_of(pool: DescriptorPool, shape: Message) -> Oneofs:
    """Return the oneofs with at least two members, of the message and of every message inside it."""
    found: dict[str, tuple[tuple[int, ...], ...]] = {}
    waiting = [shape]
    while waiting:
        message = waiting.pop()
        declared = pool.FindMessageTypeByName(message.full_name).oneofs
        members = [tuple(field.number for field in oneof.fields) for oneof in declared]
        found[message.full_name] = tuple(numbers for numbers in members if len(numbers) > 1)
        waiting.extend(field.value for field in message.fields if isinstance(field.value, Message))
    return found


def _on_each(path: str, field: FieldMapping, depth: int, conditions: _Conditions) -> Iterator[str]:
    """Yield one condition that holds when each value of the field meets its own, or nothing where there are none."""
    if field.cardinality is Cardinality.SINGULAR:
        if inside := [*conditions(path, field.value, depth)]:
            yield f"({path} IS NULL OR {_all(inside)})"
        return
    item = f"e{depth}"
    if inside := [*conditions(item, field.value, depth + 1)]:
        values = f"map_values({path})" if field.cardinality is Cardinality.MAP else path
        yield f"forall({values}, {item} -> {_all(inside)})"


def _all(conditions: Iterable[str]) -> str:
    return " AND ".join(conditions) or "TRUE"


def _rewritable(sql: str, shape: Message, depth: int) -> str:
    members = {f"f{field.number}": _member(f"{sql}.f{field.number}", field, depth) for field in shape.fields}
    if all(member == f"{sql}.{name}" for name, member in members.items()):
        return sql
    columns = ", ".join(f"'{name}', {member}" for name, member in members.items())
    return f"IF({sql} IS NULL, NULL, named_struct({columns}))"


def _member(path: str, field: FieldMapping, depth: int) -> str:
    if field.packed:
        return f"IF(size({path}) = 0, NULL, {path})"
    if not isinstance(field.value, Message) or not field.value.fields:
        return path
    item = f"e{depth}"
    match field.cardinality:
        case Cardinality.SINGULAR:
            return _rewritable(path, field.value, depth)
        case Cardinality.REPEATED:
            inside = _rewritable(item, field.value, depth + 1)
            return path if inside == item else f"transform({path}, {item} -> {inside})"
        case Cardinality.MAP:
            inside = _rewritable(item, field.value, depth + 1)
            return path if inside == item else f"transform_values({path}, (k{depth}, {item}) -> {inside})"

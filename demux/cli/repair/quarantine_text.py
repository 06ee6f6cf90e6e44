"""Rows of quarantine as text and as JSON; values from outside are made printable, and cut short. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from rich.text import Text

from demux.cli.output.documents.repairs import (
    ContentJson,
    DecodedFieldJson,
    DropJson,
    GroupJson,
    QuarantineJson,
    RecordJson,
    RecordsJson,
)
from demux.core.causes import Stage
from demux.core.protobuf.wire.wire_dump import Dump, DumpedField
from demux.core.schemas.ref import SchemaRef
from demux.core.text import count_text, printable
from demux.operations.quarantine.records import DecodedRecord, QuarantineRecord
from demux.operations.quarantine.summary import Droppable, GroupKey, QuarantineGroup, total

_MOST_CHARACTERS = 300
_MOST_BYTES = 256
_MOST_HEADERS = 20
_MOST_LINES = 50


def groups_text(
    shown: Sequence[tuple[QuarantineGroup, DecodedRecord]], groups: Sequence[QuarantineGroup]
) -> Iterator[Text]:
    """Yield a block for each group that is shown, with its newest record; then how many rows and groups there are."""
    for group, looked in shown:
        key = group.key
        yield Text.assemble(
            (printable(key.cause), "bold"), f" {_whose(key)}: {count_text(group.rows, 'row')}, {_when(group)}"
        )
        yield Text(f"    {_cut(looked.record.sentence)}")
        yield Text(f"    newest: {_cut(looked.record.record_id)}: {_in_a_line(looked)}", "dim")
    more = len(groups) - len(shown)
    rest = (
        f"; {count_text(total(groups[len(shown) :]), 'row')} in {count_text(more, 'group')} more: --limit shows them"
        if more
        else ""
    )
    yield Text(f"{count_text(total(groups), 'row')} in quarantine, in {count_text(len(groups), 'group')}{rest}")


def groups_content(
    shown: Sequence[tuple[QuarantineGroup, DecodedRecord]], groups: Sequence[QuarantineGroup]
) -> QuarantineJson:
    """Return the same as JSON data."""
    found: list[GroupJson] = [
        {
            "cause": group.key.cause,
            "stage": group.key.stage,
            "game": group.key.game,
            "schema_id": group.key.schema_id,
            "schema_guid": group.key.guid,
            "several_schemas": group.key.others,
            "rows": group.rows,
            "first": _time(group.first),
            "last": _time(group.last),
            "sentence": looked.record.sentence,
            "newest": {"record_id": looked.record.record_id, **_content_json(looked)},
        }
        for group, looked in shown
    ]
    return {"rows": total(groups), "groups": found, "more_groups": len(groups) - len(shown)}


def record_text(looked: DecodedRecord) -> Iterator[Text]:
    """Yield all that is known of a record."""
    one = looked.record
    game = "" if one.game is None else f" {_cut(printable(one.game))}"
    schema = f" {_schema(one.ref)}" if one.stage == Stage.SILVER.value else ""
    yield Text.assemble((_cut(one.record_id), "bold"), f" {printable(one.cause)}{game}{schema}")
    yield Text(f"    {_cut(one.sentence)}")
    batch = "" if one.batch_id is None else f", in batch {one.batch_id} of {_cut(one.query_id or '')}"
    yield Text(f"    quarantined {_moment(one.quarantined_at)} at stage {one.stage}{batch}")
    yield Text(f"    from {_origin(one)}")
    if one.key is not None:
        yield Text(f"    key {_bytes(one.key)}")
    for name, value in one.headers[:_MOST_HEADERS]:
        yield Text(f"    header {_cut(name or '')}: {'' if value is None else _bytes(value)}")
    if len(one.headers) > _MOST_HEADERS:
        yield Text(f"    and {count_text(len(one.headers) - _MOST_HEADERS, 'header')} more")
    yield from _content_lines(looked)


def records_text(records: Sequence[DecodedRecord], rows: int) -> Iterator[Text]:
    """Yield the records, and how many there are."""
    for looked in records:
        yield from record_text(looked)
    if rows > len(records):
        yield Text(f"the newest {len(records)} of {count_text(rows, 'row')}: --limit shows more")


def records_content(records: Sequence[DecodedRecord], rows: int) -> RecordsJson:
    """Return the same as JSON data."""
    return {"rows": rows, "records": [_record_json(looked) for looked in records]}


def drop_text(groups: Sequence[Droppable], before: datetime) -> Iterator[Text]:
    """Yield a line for each cause and game that a drop removes, and the sum."""
    for one in groups[:_MOST_LINES]:
        game = "without a game" if one.game is None else f"of {_cut(printable(one.game))}"
        yield Text(f"- drop {count_text(one.rows, 'row')} {printable(one.cause)} {game}")
    if len(groups) > _MOST_LINES:
        yield Text(
            f"- and {count_text(total(groups[_MOST_LINES:]), 'row')} of {len(groups) - _MOST_LINES} more causes "
            "and games"
        )
    yield Text(f"{count_text(total(groups), 'row')} quarantined before {_moment(before)}")


def drop_content(groups: Sequence[Droppable], before: datetime) -> DropJson:
    """Return the same as JSON data."""
    return {"before": before.isoformat(), "rows": total(groups), "groups": [*groups]}


def _whose(key: GroupKey) -> str:
    if key.stage == Stage.BRONZE.value:
        return "without a game"
    schema = "several schemas" if key.others else _schema(SchemaRef(key.schema_id, key.guid))
    return f"{_cut(printable(key.game or ''))} {schema}"


def _schema(ref: SchemaRef) -> str:
    if ref.guid is not None:
        return f"schema {_cut(ref.guid)}"
    return "no schema id" if ref.schema_id is None else f"schema {ref.schema_id}"


def _when(group: QuarantineGroup) -> str:
    if group.first == group.last:
        return _moment(group.last)
    return f"{_moment(group.first)} to {_moment(group.last)}"


def _moment(moment: datetime | None) -> str:
    return "at an unknown time" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _origin(one: QuarantineRecord) -> str:
    parts = [one.origin or "an unknown source"]
    parts += [] if one.topic is None else [f"topic {_cut(printable(one.topic))}"]
    parts += [] if one.partition is None else [f"partition {one.partition}"]
    parts += [] if one.offset is None else [f"offset {one.offset}"]
    parts += [] if one.timestamp is None else [_moment(one.timestamp)]
    return ", ".join(parts)


def _content_lines(looked: DecodedRecord) -> Iterator[Text]:
    content, dump = looked.record.content, looked.dump
    if content is None or dump is None:
        yield Text("    no bytes")
        return
    yield Text(f"    {len(content):,} bytes: {_hex(content)}" if content else "    0 bytes")
    yield Text(
        f"    as {looked.message}:" if looked.message is not None else "    without a schema, as far as it can be read:"
    )
    yield from (Text(f"      {line}") for line in _part_lines(dump.parts))
    if dump.more:
        yield Text(f"      and {count_text(dump.more, 'field')} more")
    yield Text(f"      {_end(dump)}", "yellow" if dump.stop else "")


def _part_lines(parts: Iterable[DumpedField], indent: str = "") -> Iterator[str]:
    for part in parts:
        if part.value is not None:
            yield f"{indent}{_label(part)}: {part.value}"
        else:
            yield f"{indent}{_label(part)}:"
            yield from _part_lines(part.parts, f"{indent}  ")


def _in_a_line(looked: DecodedRecord) -> str:
    if looked.dump is None:
        return "no bytes"
    fields = ", ".join(_part_in_a_line(part) for part in looked.dump.parts)
    return f"{_cut(fields)}{'; ' if fields else ''}{_end(looked.dump)}"


def _part_in_a_line(part: DumpedField) -> str:
    if part.value is not None:
        return f"{_label(part)}: {part.value}"
    return f"{_label(part)}: {{{', '.join(_part_in_a_line(each) for each in part.parts)}}}"


def _label(part: DumpedField) -> str:
    return str(part.number) if part.name is None else f"{part.number} {printable(part.name)}"


def _end(dump: Dump) -> str:
    return "to the end" if dump.stop is None else f"stops at byte {dump.stop.offset}: {dump.stop.reason}"


def _cut(text: str) -> str:
    # it may grow when it is made printable
    shown = printable(text[:_MOST_CHARACTERS])
    return f"{shown[:_MOST_CHARACTERS]}…" if max(len(text), len(shown)) > _MOST_CHARACTERS else shown


def _hex(content: bytes) -> str:
    more = "…" if len(content) > _MOST_BYTES else ""
    return f"{content[:_MOST_BYTES].hex()}{more}"


def _bytes(content: bytes) -> str:
    """Return bytes as text where they are, else as hexadecimal digits."""
    try:
        text = content[:_MOST_BYTES].decode()
    except UnicodeDecodeError:
        return f"0x{_hex(content)}"
    return f'"{printable(text)}"{"…" if len(content) > _MOST_BYTES else ""}'


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _record_json(looked: DecodedRecord) -> RecordJson:
    one = looked.record
    return {
        "record_id": one.record_id,
        "cause": one.cause,
        "stage": one.stage,
        "game": one.game,
        "schema_id": one.ref.schema_id,
        "schema_guid": one.ref.guid,
        "message_indexes": one.ref.message_indexes,
        "sentence": one.sentence,
        "quarantined_at": _time(one.quarantined_at),
        "query_id": one.query_id,
        "batch_id": one.batch_id,
        "origin": one.origin,
        "topic": one.topic,
        "partition": one.partition,
        "offset": one.offset,
        "timestamp": _time(one.timestamp),
        "key": None if one.key is None else _hex(one.key),
        "headers": [
            {"key": name, "value": None if value is None else _hex(value)}
            for name, value in one.headers[:_MOST_HEADERS]
        ],
        "hex": None if one.content is None else _hex(one.content),
        **_content_json(looked),
    }


def _content_json(looked: DecodedRecord) -> ContentJson:
    content, dump = looked.record.content, looked.dump
    return {
        "bytes": None if content is None else len(content),
        "message": looked.message,
        "fields": [] if dump is None else [_part_json(part) for part in dump.parts],
        "more_fields": 0 if dump is None else dump.more,
        "stops": None if dump is None or dump.stop is None else {"byte": dump.stop.offset, "reason": dump.stop.reason},
    }


def _part_json(part: DumpedField) -> DecodedFieldJson:
    if part.value is not None:
        return {"number": part.number, "name": part.name, "value": part.value}
    return {"number": part.number, "name": part.name, "fields": [_part_json(one) for one in part.parts]}

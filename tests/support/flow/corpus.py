"""Records of the corpus for a root, and what `google.protobuf` says that its tables must hold of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from demux.core.registry.protocol import SchemaRegistry
from demux.core.tables import SILVER_RESERVED
from tests.corpus.judge import Judge, Verdict
from tests.corpus.texts import schema_of
from tests.corpus.versions import Version, versions_of
from tests.support.data.messages import payloads
from tests.support.data.mutations import mutated
from tests.support.flow.process import Command
from tests.support.flow.root import Root, by_id, wrapper
from tests.support.oracle import difference, plain
from tests.support.spark_session import lane_of_spark

STRAIGHT, BENT = 12, 10
# types that from_protobuf reads: none has a column of JSON text
SUITED = (
    "transit_realtime.FeedMessage",
    "NanoPBOptions",
    "SC2APIProtocol.Action",
    "google.gapic.metadata.GapicMetadata",
)
_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "fleet": {"run": {"engine": "fleet"}},
    "stream": {"run": {"engine": "stream"}},
    "from_protobuf": {"decoder": "from_protobuf"},
}
_WAYS = {"current": ("fleet",), "oldest": ("stream", "from_protobuf")}


@dataclass(frozen=True, slots=True)
class Way:
    """An engine with a decoder, and the games that it decodes."""

    name: str
    games: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


def ways(**games: tuple[str, ...]) -> list[Way]:
    """These ways with their games: the fleet on the current lane, streams and Spark's own decoder on the oldest one."""
    return [Way(name, games[name]) for name in _WAYS[lane_of_spark()] if name in games]


@dataclass(frozen=True, slots=True)
class Record:
    """A record, and what must become of it: a row as the verdict has it, or this cause in quarantine."""

    game: str
    schema_id: int
    payload: bytes
    verdict: Verdict
    cause: str | None = None

    @property
    def wrapper(self) -> bytes:
        return wrapper(self.game, self.schema_id, self.payload)


@dataclass
class Sent:
    """What a root was sent, by record id."""

    root: Root
    records: dict[str, Record] = field(default_factory=dict)

    def send(self, records: Sequence[Record]) -> None:
        first = len(self.records)
        self.root.send([record.wrapper for record in records], first)
        self.records |= {f"t/0/{first + at}": record for at, record in enumerate(records)}


def sent_to(way: Way, spark: SparkSession, folder: Path, **settings: Any) -> Sent:
    """A root with the settings of the way, which was sent nothing yet."""
    return Sent(Root.at(spark, folder / "root", **_SETTINGS[way.name], **settings))


def registered(registry: SchemaRegistry, games: Sequence[str], suffix: str = "") -> dict[Version, int]:
    """The ids of the games' versions, registered under subjects that are called like the game with this suffix."""
    versions = [version for game in games for version in versions_of(game)]
    ids = registry.register_all([schema_of(version, f"{version.message}{suffix}") for version in versions])
    return dict(zip(versions, ids, strict=True))


def run_of(root: Root, command: Command) -> None:
    """`demux run`, which must succeed."""
    file = root.folder.parent / "demux.yml"
    # every JSON text is YAML
    file.write_text(root.settings.model_dump_json(exclude_unset=True))
    said = command("run", "-c", str(file))
    assert (said.code, said.err) == (0, ""), said.out


@cache
def _judge(version: Version) -> Judge:
    return Judge(version, SILVER_RESERVED)


def records_of(version: Version, schema_id: int) -> list[Record]:
    """Straight and bent messages of a version, as records of the game that is called like the message."""
    descriptor: Any = version.type.DESCRIPTOR
    rng = random.Random(f"{version}")
    made = payloads(version.type, 7, STRAIGHT, density=0.4)
    made += [mutated(rng.choice(made[:STRAIGHT]), descriptor, rng) for _ in range(BENT)]
    return [_record(version, schema_id, payload) for payload in made]


def _record(version: Version, schema_id: int, payload: bytes) -> Record:
    verdict = _judge(version).verdict(payload)
    cause = None if verdict.row is not None else "MALFORMED_PAYLOAD"
    return Record(version.message, schema_id, payload, verdict, cause)


def refused(game: str, schema_id: int, payload: bytes, cause: str) -> Record:
    """A record of any bytes that must go to quarantine."""
    return Record(game, schema_id, payload, Verdict(None), cause)


def mixed(seed: int, *parts: Sequence[Record]) -> list[Record]:
    """The records of all parts in an order of chance."""
    records = [record for part in parts for record in part]
    random.Random(seed).shuffle(records)
    return records


def mistakes(sent: Sent) -> list[str]:
    """What the root's tables have that they must not have, or have not, of all that was sent."""
    set_aside = by_id(sent.root.quarantine())
    found = []
    wanted = {record_id: record.cause for record_id, record in sent.records.items() if record.cause is not None}
    for record_id in sorted(wanted.keys() | set_aside.keys()):
        row = set_aside.get(record_id)
        if wanted.get(record_id) != (row and row["cause"]):
            found.append(
                f"{_record_text(sent, record_id)}: {wanted.get(record_id)}, "
                f"but {row and (row['cause'], row['sentence'])}"
            )
    for game in sorted({record.game for record in sent.records.values()}):
        found += _wrong_rows(sent, game)
    return found


def _wrong_rows(sent: Sent, game: str) -> Iterator[str]:
    wanted = {
        record_id: record for record_id, record in sent.records.items() if record.game == game and record.cause is None
    }
    path = sent.root.silver_path(game)
    if not DeltaTable.is_deltatable(path):
        yield f"{game}: no table"
        return
    table: pa.Table = DeltaTable(path).to_pyarrow_table()
    own = [column for column in table.schema if column.name not in SILVER_RESERVED]
    rows = by_id(table.to_pylist())
    yield from (
        f"{_record_text(sent, record_id)}: no row of its own" for record_id in sorted(wanted.keys() ^ rows.keys())
    )
    for record_id in sorted(wanted.keys() & rows.keys()):
        record, row = wanted[record_id], rows[record_id]
        assert record.verdict.row is not None
        expected = {column.name: in_table(record.verdict.row.get(column.name), column.type) for column in own}
        lost = record.verdict.row.keys() - expected.keys()
        wrong = difference(expected, {name: plain(row[name]) for name in expected}, _record_text(sent, record_id))
        if wrong or lost:
            yield wrong or f"{_record_text(sent, record_id)}: no columns {lost}"
        if row["_schema_id"] != record.schema_id or (row["_rescued"] is not None) != record.verdict.left_over:
            yield f"{_record_text(sent, record_id)}: schema {row['_schema_id']}, rescued {row['_rescued']}"


def in_table(value: Any, kind: pa.DataType) -> Any:
    """The oracle's value with NULL where the table has fields that the record's version has not, at every depth."""
    match value:
        case dict() if pa.types.is_struct(kind):
            return {part.name: in_table(value.get(part.name), part.type) for part in kind}
        case dict() if pa.types.is_map(kind):
            return {key: in_table(inside, kind.item_type) for key, inside in value.items()}
        case list():
            return [in_table(item, kind.value_type) for item in value]
    return value


def _record_text(sent: Sent, record_id: str) -> str:
    record = sent.records[record_id]
    return f"{record.game} {record_id} (schema {record.schema_id}, {record.payload.hex()})"

"""What `google.protobuf` says of every record that the simulator sent, against every table of a root; without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import Message

from demux.core.causes import Stage
from demux.core.protobuf.envelope import envelope_of
from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of
from demux.core.settings.source import WrapperSettings
from demux.core.tables import SILVER_RESERVED
from producer.run import ProduceReport
from tests.support.flow.root import Root, Rows, by_id, rows
from tests.support.oracle import difference, oracle_row, plain

_CARRIED = ("topic", "partition", "offset", "timestamp")


@dataclass(frozen=True, slots=True)
class Tables:
    """The rows of all tables by record id, each id once in its table."""

    source: Mapping[str, Mapping[str, Any]]
    bronze: Mapping[str, Mapping[str, Any]]
    quarantine: Mapping[str, Mapping[str, Any]]
    silver: Mapping[str, pa.Table]

    @staticmethod
    def of(root: Root, games: Sequence[str]) -> Tables:
        """Read them; raises when an id is twice in a table."""
        source = {f"{row['topic']}/{row['partition']}/{row['offset']}": row for row in root.source()}
        silver = {game: DeltaTable(root.silver_path(game)).to_pyarrow_table() for game in games}
        return Tables(source, by_id(root.bronze()), by_id(root.quarantine()), silver)


def check_everything(root: Root, reports: Sequence[ProduceReport]) -> None:
    """Fail where a record is missing, doubled, in a wrong place, or not what its bytes say."""
    games = sorted({game.game for report in reports for game in report.games})
    tables = Tables.of(root, games)
    _check_places(tables)
    _check_counts(tables, reports)
    _check_bytes(tables)
    schema_ids = {schema_id for report in reports for schema_id in report.schema_ids}
    messages = {schema_id: root.message(schema_id) for schema_id in schema_ids}
    assert list(differences(tables, messages)) == []
    _check_control(root, games)


def _check_places(tables: Tables) -> None:
    """Each record is in one place; each row of bronze in its own game's table, or in quarantine."""
    silver = [record_id for table in tables.silver.values() for record_id in table.column("_record_id").to_pylist()]
    assert Counter([*silver, *tables.quarantine]) == Counter(tables.source.keys())
    at_silver = {each: row["game_name"] for each, row in tables.quarantine.items() if _stage(row) is Stage.SILVER}
    decoded = {
        record_id: game for game, table in tables.silver.items() for record_id in table.column("_record_id").to_pylist()
    }
    assert decoded | at_silver == {record_id: row["game_name"] for record_id, row in tables.bronze.items()}


def _check_counts(tables: Tables, reports: Sequence[ProduceReport]) -> None:
    """As many rows of each game, and of each cause, as the simulator made."""
    bronze, silver = Counter[str](), Counter[str]()
    causes, of_games = Counter[str](), Counter[tuple[str, str]]()
    for report in reports:
        causes.update({cause.value: count for cause, count in report.quarantine.items()})
        for game in report.games:
            bronze[game.game] += game.bronze
            silver[game.game] += game.silver
            of_games.update({(game.game, cause.value): count for cause, count in game.quarantine.items()})
    assert Counter(row["game_name"] for row in tables.bronze.values()) == +bronze
    assert Counter({game: len(table) for game, table in tables.silver.items()}) == +silver
    found = tables.quarantine.values()
    assert Counter(row["cause"] for row in found) == +causes
    assert Counter((row["game_name"], row["cause"]) for row in found if _stage(row) is Stage.SILVER) == +of_games


def _check_bytes(tables: Tables) -> None:
    """Bronze has the wrapper's fields, quarantine the bytes of what it holds."""
    compiled = envelope_of(WrapperSettings())
    wrapper = message_class(pool_of(FileDescriptorSet.FromString(compiled.descriptor_set)), compiled.message)
    for record_id, row in tables.bronze.items():
        sent = tables.source[record_id]
        parsed: Any = wrapper.FromString(sent["value"])
        assert (row["game_name"], row["schema_id"], row["payload"]) == (
            parsed.game_name,
            parsed.schema_id,
            parsed.payload,
        )
        assert [row[name] for name in _CARRIED] == [sent[name] for name in _CARRIED]
    for record_id, row in tables.quarantine.items():
        at_bronze = _stage(row) is Stage.BRONZE
        kept = tables.source[record_id]["value"] if at_bronze else tables.bronze[record_id]["payload"]
        assert row["bytes"] == kept


def differences(tables: Tables, messages: Mapping[int, type[Message]]) -> Iterator[str]:
    """Yield where a row of silver is not what its payload says, in any column."""
    for game, table in tables.silver.items():
        own = [field for field in table.schema if field.name not in SILVER_RESERVED]
        for got in table.to_pylist():
            record_id = got["_record_id"]
            sent = tables.bronze[record_id]
            message = messages[sent["schema_id"]]
            descriptor: Any = message.DESCRIPTOR
            expected = oracle_row(message.FromString(sent["payload"]), descriptor, SILVER_RESERVED)
            # every column of the message is a column of the table, which may have more
            assert expected.keys() <= {field.name for field in own}
            expected = {field.name: _in_table(expected.get(field.name), field.type) for field in own}
            expected |= {f"_{name}": plain(sent[name]) for name in ("schema_id", *_CARRIED)}
            found = difference(expected, {name: plain(got[name]) for name in expected})
            if found is not None or got["_decoded_at"] is None:
                yield f"{game} {record_id}: {found}"


def _in_table(value: Any, kind: pa.DataType) -> Any:
    """Return the value with NULL where the table has fields that the message's version has not."""
    if value is None or not pa.types.is_struct(kind):
        return value
    return {field.name: _in_table(value.get(field.name), field.type) for field in kind}


def _check_control(root: Root, games: Sequence[str]) -> None:
    """Each game is known once, and each schema kept once."""
    assert sorted(row["game_name"] for row in rows(root.here.games)) == list(games)
    kept: Rows = rows(root.here.schemas)
    assert max(Counter((row["registry"], row["schema_id"]) for row in kept).values()) == 1


def _stage(row: Mapping[str, Any]) -> Stage:
    return Stage(row["stage"])

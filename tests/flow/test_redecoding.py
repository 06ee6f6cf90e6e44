"""Days and whole games decoded again from bronze: as a fresh decode would be, beside live engines, wherever killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from demux.cli.backfill_days import Backfilling
from demux.cli.reconcile import ledger_of
from deserializer.days import Asked
from deserializer.repair import rebuild
from tests.flow.fleet import FLEET, run, without_errors
from tests.flow.root import Root, by_id, wrapper
from tests.oracle import difference, oracle_row

Copy = Callable[..., Root]

EVENT = 'syntax = "proto3"; message Event { string name = 1; }'
MORE = 'syntax = "proto3"; message Event { string name = 1; int64 score = 2; }'
HOSTILE = "a'b`; drop -- ${x}"
GAMES = ("chess", HOSTILE)
FIRST = date(2026, 1, 1)
STREAM: Mapping[str, object] = {"engine": "stream", "retry_wait_s": 0.0}
# every day: two rows of the first schema, one of a schema that nobody has yet, one that is broken; of the last ones
# there is a record without a time too
PER_DAY = 4
LAST_TWO = Asked((), FIRST + timedelta(days=1), FIRST + timedelta(days=2))


class Death(BaseException):
    """The end of the process, which no thread survives."""


def send(root: Root, first_offset: int, records: Sequence[tuple[bytes, datetime | None]]) -> None:
    """Append records with their times to the source, with ids `t/0/<offset>`."""
    columns = {
        "value": pa.array([value for value, _ in records], pa.binary()),
        "topic": pa.array(["t"] * len(records), pa.string()),
        "partition": pa.array([0] * len(records), pa.int32()),
        "offset": pa.array(range(first_offset, first_offset + len(records)), pa.int64()),
        "timestamp": pa.array([at for _, at in records], pa.timestamp("us", "UTC")),
    }
    write_deltalake(root.settings.source_path, pa.table(columns), mode="append")


def of_day(root: Root, day: int, known: int) -> list[tuple[bytes, datetime | None]]:
    """Return the records of a day, of both games."""
    at = datetime(2026, 1, 1, 23, 59, 59, 999_999, tzinfo=timezone.utc) + timedelta(days=day)
    name = root.message(known)(name=f"day {day}").SerializeToString()
    payloads = ((known, name), (known, b""), (known + 2, name + b"\x10\x07"), (known, b"\x0a\x09"))
    return [(wrapper(game, schema_id, payload), at) for game in GAMES for schema_id, payload in payloads]


@pytest.fixture(scope="module")
def days(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Root:
    """Three days of two games in bronze, and one record without a time. To be copied."""
    root = Root.at(spark, tmp_path_factory.mktemp("days") / "root")
    known = root.register("chess", EVENT)
    root.register(HOSTILE, EVENT)
    records = [record for day in range(3) for record in of_day(root, day, known)]
    send(root, 0, [*records, (wrapper("chess", known, b""), None)])
    root.workplace().ingest()
    return root


@pytest.fixture(scope="module")
def streamed(days: Root, tmp_path_factory: pytest.TempPathFactory) -> Root:
    """The same, decoded by streams. To be copied."""
    root = days.copied_to(tmp_path_factory.mktemp("streamed") / "root", run=STREAM)
    without_errors(run(root))
    return root


@pytest.fixture(scope="module")
def fleeted(days: Root, tmp_path_factory: pytest.TempPathFactory) -> Root:
    """The same, decoded by the fleet. To be copied."""
    root = days.copied_to(tmp_path_factory.mktemp("fleeted") / "root", run=FLEET)
    without_errors(run(root))
    return root


@pytest.fixture(params=["stream", "fleet"])
def decoded(request: pytest.FixtureRequest, copy: Copy) -> Root:
    """A copy of either, to be changed; somebody has registered the schema that was not known."""
    name, settings = {"stream": ("streamed", STREAM), "fleet": ("fleeted", FLEET)}[request.param]
    return corrected(copy(request.getfixturevalue(name), run=settings))


def corrected(root: Root) -> Root:
    root.register("chess", MORE)
    return root


def backfill(root: Root, wanted: Asked) -> Backfilling:
    backfilling = Backfilling(root.workplace(), wanted)
    backfilling.run()
    return backfilling


def rebuilt(root: Root, game: str) -> None:
    rebuild(root.spark, root.layout, root.workplace().schemas, game)


def causes(root: Root, game: str) -> Counter[tuple[str, date | None]]:
    """How many rows of a game are in quarantine, by cause and day."""
    return Counter(
        (row["cause"], row["timestamp"] and row["timestamp"].date())
        for row in root.quarantine()
        if (row["game_name"], row["stage"]) == (game, "silver")
    )


def schema_of(root: Root, game: str) -> list[Any]:
    return DeltaTable(root.silver_path(game)).schema().fields


def require_oracle(root: Root, game: str) -> None:
    """Each row of silver is what google.protobuf makes of the record's bytes in bronze."""
    bronze = by_id([row for row in root.bronze() if row["game_name"] == game])
    for row in root.silver(game):
        source = bronze[row["_record_id"]]
        message = root.message(source["schema_id"])
        wanted = oracle_row(message.FromString(source["payload"]), message.DESCRIPTOR)
        assert difference(wanted, {name: row[name] for name in wanted}) is None


def lasting(root: Root) -> object:
    """All that a decode decides; also how columns are described."""
    return root.everything(), [schema_of(root, game) for game in GAMES]


def test_days_are_as_a_fresh_decode_makes_them_and_other_days_are_left_alone(decoded: Root, tmp_path: Path) -> None:
    fresh = decoded.copied_to(tmp_path / "fresh")
    for game in GAMES:
        rebuilt(fresh, game)
    before = {game: decoded.silver(game) for game in GAMES}
    done = backfill(decoded, LAST_TWO).backfill
    assert [(day.game, day.day.day, day.rows, day.counts.rows_silver, day.counts.rows_quarantined) for day in done.days]
    for game in GAMES:
        assert causes(decoded, game) == {
            ("UNKNOWN_SCHEMA", FIRST): 1,
            ("MALFORMED_PAYLOAD", FIRST): 1,
            ("MALFORMED_PAYLOAD", FIRST + timedelta(days=1)): 1,
            ("MALFORMED_PAYLOAD", FIRST + timedelta(days=2)): 1,
        }
        again = {row["_record_id"] for row in decoded.silver(game) if row["_timestamp"] and row["_timestamp"].day > 1}
        silver, others = by_id(decoded.silver(game)), by_id(fresh.silver(game))
        passing = {"_decoded_at"}
        for record_id in again:
            assert silver[record_id].items() - others[record_id].items() <= {
                (name, silver[record_id][name]) for name in passing
            }
        assert len(again) == 2 * (PER_DAY - 1)
        # not decoded again, down to the time of decoding
        old = by_id(before[game])
        assert [silver[one]["_decoded_at"] for one in silver.keys() - again] == [
            old[one]["_decoded_at"] for one in silver.keys() - again
        ]
        require_oracle(decoded, game)
        require_oracle(fresh, game)
    # both engines go on
    for root in (decoded, fresh):
        send(root, 100, of_day(root, 5, 1))
        without_errors(run(root))
        assert ledger_of(root.workplace()).balances
        other = root.copied_to(root.folder.parent / f"{root.folder.name} other", run=other_engine(root))
        send(other, 200, of_day(other, 6, 1))
        without_errors(run(other))
        assert ledger_of(other.workplace()).balances
        assert len(other.silver(HOSTILE)) == len(root.silver(HOSTILE)) + PER_DAY - 1


def other_engine(root: Root) -> Mapping[str, object]:
    return STREAM if root.settings.run.engine.value == "fleet" else FLEET

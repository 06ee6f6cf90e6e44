"""Days and whole games decoded again from bronze: as a fresh decode is, beside live engines, wherever it was killed."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from google.protobuf.descriptor import Descriptor
from pyspark.sql import SparkSession

from demux import api
from demux.cli.repair import backfill_days
from demux.cli.repair.backfill_days import Backfilling
from demux.core.columns.arrow import arrow_fields
from demux.core.columns.spark import MESSAGE
from demux.core.errors import RangeRetired
from demux.core.settings.settings import Sink
from demux.core.tables import REMOVED
from deserializer.redecode.backfill_plan import BackfillRequest
from deserializer.redecode.redecoder import Redecoder, rebuild
from deserializer.silver.file_quarantine import Quarantine
from deserializer.silver.spark_quarantine import QuarantineBySpark
from install_workflow.planning.plan import Task
from tests.support.flow import crash
from tests.support.flow.fleet import FLEET, crash_after, without_errors
from tests.support.flow.process import Command
from tests.support.flow.root import Root, by_id, wrapper
from tests.support.oracle import difference, oracle_row

Copy = Callable[..., Root]

EVENT = """
    syntax = "proto3";
    // What a player did.
    message Event {
        // Who.
        string name = 1;
    }
"""
MORE = """
    syntax = "proto3";
    // What somebody did.
    message Event {
        string name = 1;
        // How many.
        int64 score = 2;
    }
"""
HOSTILE = "a'b`; drop -- ${x}"
GAMES = ("chess", HOSTILE)
# of each game: the schema that is there at first, and the one that comes later
IDS = {"chess": (1, 3), HOSTILE: (2, 4)}
DAYS = tuple(date(2026, 1, 1) + timedelta(days=number) for number in range(5))
STREAM: Mapping[str, object] = {"engine": "stream", "retry_wait_s": 0.0, "retries": 0}
ONE_BY_ONE: Mapping[str, object] = {**FLEET, "retries": 0, "parallelism": 1}
# a day of a game: two rows of the first schema, one of a schema that nobody has yet, one that is broken
PER_DAY = 4
LAST_TWO = BackfillRequest((), DAYS[1], DAYS[2])


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


def of_day(root: Root, day: int) -> list[tuple[bytes, datetime | None]]:
    """Return the records of a day, of both games; the last moment of it."""
    at = datetime(2026, 1, 1, 23, 59, 59, 999_999, tzinfo=timezone.utc) + timedelta(days=day)
    name = root.message(1)(name=f"day {day}").SerializeToString()
    return [
        (wrapper(game, schema_id, payload), at)
        for game, (first, newer) in IDS.items()
        for schema_id, payload in ((first, name), (first, b""), (newer, name + b"\x10\x07"), (first, b"\x0a\x09"))
    ]


@pytest.fixture(scope="module")
def days(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Root:
    """Three days of two games in bronze, and a record without a time. To be copied."""
    root = Root.at(spark, tmp_path_factory.mktemp("days") / "root")
    assert (root.register("chess", EVENT), root.register(HOSTILE, EVENT)) == (1, 2)
    send(root, 0, [*(record for day in range(3) for record in of_day(root, day)), (wrapper("chess", 1, b""), None)])
    root.workplace().ingest()
    return root


@pytest.fixture(scope="module")
def streamed(days: Root, tmp_path_factory: pytest.TempPathFactory) -> Root:
    """The same, decoded by streams; a schema was registered since. To be copied."""
    # two that make quarantine at once: one of them has to try again
    patient = {**STREAM, "retries": 3}
    return decoded(days.copied_to(tmp_path_factory.mktemp("streamed") / "root", run=patient))


@pytest.fixture(scope="module")
def fleeted(days: Root, tmp_path_factory: pytest.TempPathFactory) -> Root:
    """The same, decoded by the fleet; a schema was registered since. To be copied."""
    return decoded(days.copied_to(tmp_path_factory.mktemp("fleeted") / "root", run=FLEET))


def decoded(root: Root) -> Root:
    without_errors(root.run())
    assert (root.register("chess", MORE), root.register(HOSTILE, MORE)) == (3, 4)
    return root


def backfill(root: Root, wanted: BackfillRequest) -> list[tuple[str, int, int, int, int]]:
    """Return the days that were decoded: game, day of the month, rows in, of these in silver, and in quarantine."""
    backfilling = Backfilling(root.workplace(), wanted)
    backfilling.run()
    return [
        (day.game, day.day.day, day.counts.rows_in, day.counts.rows_silver, day.counts.rows_quarantined)
        for day in backfilling.backfill.days
    ]


def rebuilt(root: Root, game: str, accept_loss: bool = False, sink: Sink = Sink.AUTO) -> None:
    rebuild(Redecoder(root.spark, root.layout, root.workplace().schemas, sink), game, accept_loss=accept_loss)


def balances(root: Root) -> bool:
    return api.Root(root.settings).reconcile().balances


def causes(root: Root, game: str) -> Counter[tuple[str, date]]:
    """How many rows of a game are in quarantine, by cause and day."""
    mine = (row for row in root.quarantine() if (row["game_name"], row["stage"]) == (game, "silver"))
    return Counter((row["cause"], row["timestamp"].date()) for row in mine)


def said_of(root: Root, game: str) -> list[object]:
    """The table's comment, and its columns with all that is said of them."""
    table = DeltaTable(root.silver_path(game))
    fields = json.loads(table.schema().to_json())["fields"]
    for field in fields[1:]:
        # a column that was added says it again
        field["metadata"].pop(MESSAGE, None)
    return [table.metadata().description, *fields]


def require_oracle(root: Root, game: str) -> None:
    """Check that each row of silver is what google.protobuf makes of the record's bytes in bronze."""
    bronze = by_id([row for row in root.bronze() if row["game_name"] == game])
    for row in root.silver(game):
        source = bronze[row["_record_id"]]
        message = root.message(source["schema_id"])
        assert isinstance(message.DESCRIPTOR, Descriptor)
        wanted = oracle_row(message.FromString(source["payload"]), message.DESCRIPTOR)
        assert difference(wanted, {name: row[name] for name in wanted}) is None


def whereabouts(root: Root, game: str) -> tuple[list[str], set[str]]:
    """The records of a game in silver, and those in quarantine."""
    bad = {row["record_id"] for row in root.quarantine() if row["game_name"] == game and row["stage"] == "silver"}
    return [row["_record_id"] for row in root.silver(game)], bad


def require_nothing_lost(root: Root, game: str, waiting: int = 0) -> None:
    """Check that each record of bronze is in one of both tables, but some of the last day that wait."""
    good, bad = whereabouts(root, game)
    there = {row["record_id"]: row["timestamp"] for row in root.bronze() if row["game_name"] == game}
    assert len(set(good)) == len(good)
    left = there.keys() - {*good, *bad}
    assert len(left) <= waiting
    assert all(there[one].date() == DAYS[3] for one in left)


@pytest.mark.parametrize(
    ("start", "settings", "other"),
    [pytest.param("streamed", STREAM, FLEET, marks=pytest.mark.oldest), ("fleeted", FLEET, STREAM)],
)
def test_days_and_games_are_as_a_fresh_decode_makes_them_and_either_engine_goes_on(
    request: pytest.FixtureRequest,
    copy: Copy,
    tmp_path: Path,
    start: str,
    settings: Mapping[str, object],
    other: Mapping[str, object],
) -> None:
    root = copy(request.getfixturevalue(start), run=settings)
    before = by_id(root.silver("chess"))
    send(root, 100, of_day(root, 3))
    root.workplace().ingest()

    # the last of these days waits for the live engine
    counts = ((2, 4, 3, 1), (3, 4, 3, 1), (4, 0, 0, 0))
    assert backfill(root, BackfillRequest((), DAYS[1], None)) == [
        (game, *each) for game in sorted(GAMES) for each in counts
    ]
    after = by_id(root.silver("chess"))
    # another day is not touched, down to the time of decoding
    untouched = [one for one, row in before.items() if row["_timestamp"] is None or row["_timestamp"].day == 1]
    assert [after[one]["_decoded_at"] for one in untouched] == [before[one]["_decoded_at"] for one in untouched]
    assert {row["_timestamp"].day: row["score"] for row in after.values() if row["score"]} == {2: 7, 3: 7}
    assert causes(root, "chess") == {
        ("UNKNOWN_SCHEMA", DAYS[0]): 1,
        **{("MALFORMED_PAYLOAD", day): 1 for day in DAYS[:3]},
    }
    for game in GAMES:
        require_oracle(root, game)
        require_nothing_lost(root, game, waiting=PER_DAY)

    root = root.copied_to(tmp_path / "other", run=other)
    without_errors(root.run())
    assert balances(root)
    fresh = root.copied_to(tmp_path / "fresh")
    backfill(root, BackfillRequest(("chess",), None, DAYS[0]))
    rebuilt(fresh, "chess")
    assert fresh.everything() == root.everything()
    assert said_of(fresh, "chess") == said_of(root, "chess")
    require_oracle(fresh, "chess")

    again = fresh.copied_to(tmp_path / "again", run=settings)
    send(again, 200, of_day(again, 4))
    without_errors(again.run())
    for game in GAMES:
        require_nothing_lost(again, game)
    assert balances(again)


@pytest.mark.parametrize("sink", [Sink.FILES, pytest.param(Sink.SPARK, marks=pytest.mark.long)])
def test_a_backfill_that_dies_after_any_of_its_writes_is_ended_by_the_same_command(
    fleeted: Root, copy: Copy, sink: Sink
) -> None:
    settings = {**ONE_BY_ONE, "sink": sink.value}
    undisturbed, wanted = copy(fleeted, run=settings), BackfillRequest((HOSTILE,), DAYS[1], DAYS[2])
    # with it, all is known of the schema that came
    backfill(undisturbed, BackfillRequest((HOSTILE,), DAYS[0], DAYS[0]))
    send(undisturbed, 100, of_day(undisturbed, 3))
    undisturbed.workplace().ingest()
    root = undisturbed.copied_to(undisturbed.folder.parent / "killed", run=settings)
    assert backfill(undisturbed, wanted) == [(HOSTILE, 2, 4, 3, 1), (HOSTILE, 3, 4, 3, 1)]
    # the fleet died as well, with bad rows in quarantine: the backfill ends its round first
    owner, method = (Quarantine, "append") if sink is Sink.FILES else (QuarantineBySpark, "append_rows")
    with crash_after(owner, method), pytest.raises(KeyboardInterrupt):
        root.run()
    # days to do; bad rows; silver; quarantine; what is done
    for number in (1, 2, 3, 4, 5):
        with crash.after_writes(number, crash.Death), pytest.raises(crash.Death):
            backfill(root, wanted)
        require_nothing_lost(root, HOSTILE, waiting=PER_DAY)
    backfill(root, wanted)
    for each in (root, undisturbed):
        without_errors(each.run())
    assert root.everything() == undisturbed.everything()
    assert balances(root)


def test_many_games_are_decoded_again_in_one_job_and_by_spark_alone_in_the_same_way(
    fleeted: Root, copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copy(fleeted, run=FLEET)
    alone = root.copied_to(root.folder.parent / "alone", run={**FLEET, "sink": "spark"})
    with monkeypatch.context() as patch:
        patch.setattr(backfill_days, "run_tasks", nothing_left)
        # some rows of each file, and the column that came; then all rows of a table; then some of what this has made
        for wanted in (
            BackfillRequest((), DAYS[1], None),
            BackfillRequest((HOSTILE,), None, None),
            BackfillRequest((), DAYS[0], DAYS[1]),
        ):
            assert {one[2:] for one in backfill(root, wanted)} == {(4, 3, 1)}
    backfill(alone, BackfillRequest((), None, None))
    assert root.everything() == alone.everything()
    assert balances(root)
    assert [row["score"] for row in root.silver(HOSTILE) if row["score"]] == [7, 7, 7]
    for game in GAMES:
        require_oracle(root, game)
        require_nothing_lost(root, game)


def nothing_left(_spark: SparkSession, tasks: Sequence[Task], *_: object) -> tuple[()]:
    assert not tasks
    return ()


@pytest.mark.parametrize("sink", [Sink.FILES, Sink.SPARK])
def test_a_rebuild_that_dies_after_any_of_its_writes_is_ended_by_the_same_command(
    streamed: Root, copy: Copy, sink: Sink
) -> None:
    undisturbed = copy(streamed, run=STREAM)
    send(undisturbed, 100, of_day(undisturbed, 3))
    undisturbed.workplace().ingest()
    root = undisturbed.copied_to(undisturbed.folder.parent / "killed", run=STREAM)
    rebuilt(undisturbed, HOSTILE, sink=sink)
    # the schema, once; bad rows, one of them of the day that waits; silver; quarantine
    for number, waiting in ((1, PER_DAY), (1, PER_DAY - 1), (2, 0), (3, 0)):
        with crash.after_writes(number, crash.Death), pytest.raises(crash.Death):
            rebuilt(root, HOSTILE, sink=sink)
        require_nothing_lost(root, HOSTILE, waiting)
    rebuilt(root, HOSTILE, sink=sink)
    assert by_id(root.silver(HOSTILE)).keys() == by_id(undisturbed.silver(HOSTILE)).keys()
    for each in (root, undisturbed):
        without_errors(each.run())
        assert balances(each)
    assert root.everything() == undisturbed.everything()


def test_the_command_says_what_there_is_to_do_what_it_did_and_why_it_refuses(
    fleeted: Root, copy: Copy, command: Command
) -> None:
    root = copy(fleeted, run=FLEET)
    place = ("--root", str(root.folder), "--set", "run.retries=0")

    def said(*words: str) -> tuple[int, str]:
        ended = command("backfill", *words, *place)
        return ended.code, ended.out + ended.err

    assert said("--status") == (0, "no backfill yet\n")
    code, text = said("--from", "2026-01-02", "--to", "2026-01-03", "--dry-run")
    assert (code, "2 games, 4 days, 16 rows: about " in text, "nothing was decoded" in text) == (0, True, True)
    assert "1 row of chess say of no day; `demux rebuild --game chess` decodes them again." in text
    before = root.everything()
    refused = {
        ("--from", "2026-02-31"): "--from '2026-02-31' is no date",
        ("--from", "2026-01-02", "--to", "2026-01-01"): "RANGE_INVALID The range begins on 2026-01-02",
        ("--from", "2026-02-01"): "It has records from 2026-01-01 to 2026-01-03",
        ("--game", "ches", "--from", "2026-01-01"): "GAME_UNKNOWN",
        (): "SETTINGS_INVALID Say what to do again",
        ("--status", "--dry-run"): "SETTINGS_INVALID",
    }
    for words, cause in refused.items():
        code, text = said(*words)
        assert (code, cause in text) == (2, True), text
    assert root.everything() == before

    # chess: a row is old and was retired; the other game: somebody deleted one
    bronze = DeltaTable(root.layout.bronze)
    retired = next(row for row in root.bronze() if row["record_id"] == "t/0/8")
    removed = {name: retired[name] for name in retired if name in {column.name for column in REMOVED}}
    write_deltalake(
        root.layout.removed,
        pa.Table.from_pylist([removed | {"reason": "retired"}], schema=pa.schema(arrow_fields(REMOVED))),
    )
    bronze.delete("record_id IN ('t/0/8', 't/0/12')")
    before = root.everything()
    code, text = said("--from", "2026-01-01", "--to", "2026-01-03")
    assert (code, root.everything()) == (3, before)
    for game in GAMES:
        option = shlex.quote(game)
        assert f"Bronze does not have 1 row of the game {option} any more; it is whole from 2026-01-03 on." in text
        assert f"`demux backfill --game {option} --from 2026-01-03`" in text
        with pytest.raises(RangeRetired):
            rebuilt(root, game)
    assert root.everything() == before
    assert said("--from", "2026-01-03", "--to", "2026-01-03")[0] == 0
    assert {row["_timestamp"].day for row in root.silver(HOSTILE) if row["score"]} == {3}
    assert len(root.silver(HOSTILE)) == 7
    rebuilt(root, HOSTILE, accept_loss=True)
    assert len(root.silver(HOSTILE)) == 8
    code, text = said("--status")
    assert (code, [" ".join(line.split()[2:]) for line in text.splitlines() if line.startswith(" 20")]) == (
        0,
        ["all 2026-01-03 2026-01-03 2 of 2 0 8 of 8", "all 2026-01-01 2026-01-03 0 of 6 6 0 of 22 ?"],
    )

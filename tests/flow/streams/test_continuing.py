"""What comes after the first run: new events, old ones again, a new version, a new game; and inputs without any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from demux.core.errors import SourceMissing
from demux.core.tables import SILVER_ORIGIN
from demux.pipeline.round import Round
from producer.run import ProduceReport
from tests.support.flow.fleet import STREAM
from tests.support.flow.root import Root, Rows, by_id, columns, rows, wrapper

_ORIGIN = [column.name for column in SILVER_ORIGIN]


@dataclass(frozen=True, slots=True)
class Continued:
    before: Root
    root: Root
    report: ProduceReport
    round: Round


@pytest.fixture
def root(root: Root) -> Root:
    """A root whose rounds are by streams: what a checkpoint keeps from run to run is the subject here."""
    return Root.at(root.spark, root.folder, run=STREAM)


@pytest.fixture(scope="module")
def continued(streamed: Root, tmp_path_factory: pytest.TempPathFactory) -> Continued:
    """After chess and go in versions 1 and 2: the newest 25 messages again, then events of a third game and version."""
    root = streamed.copied_to(tmp_path_factory.mktemp("continued") / "root", run=STREAM)
    report = root.produce(events=150, games=3, versions=3, fault_rate=0.1, resend=25)
    return Continued(streamed, root, report, root.run())


@pytest.mark.both_lanes
def test_a_next_run_takes_only_what_is_new(continued: Continued) -> None:
    assert continued.round.ingested.rows_in == 175
    tasks = {end.task.game: end.report for end in continued.round.ended}
    assert sorted(tasks) == ["backgammon", "chess", "go"]
    assert sum(report.rows_in for report in tasks.values() if report) == continued.round.ingested.rows_bronze


@pytest.mark.both_lanes
def test_rows_of_the_first_run_stay_as_they_are(continued: Continued) -> None:
    for game in ("chess", "go"):
        after = by_id(continued.root.silver(game))
        for record_id, row in by_id(continued.before.silver(game)).items():
            # the new version adds a field inside: the value grows by a NULL
            device = {"device": row["device"] and {**row["device"], "os": None}}
            assert {name: after[record_id][name] for name in row} == row | device


def test_new_events_are_as_many_rows_as_were_sent(continued: Continued) -> None:
    resent = _resent(continued)
    for game in continued.report.games:
        again = sum(row["game_name"] == game.game for row in resent)
        new = [row for row in _new(continued, continued.root.bronze()) if row["game_name"] == game.game]
        assert len(new) == game.bronze + again


def test_a_message_that_is_sent_again_is_a_row_of_its_own(continued: Continued) -> None:
    resent = _resent(continued)
    assert len(resent) > 15
    everything = continued.root.bronze()
    for row in resent:
        equal = [other for other in everything if other["payload"] == row["payload"] and row["payload"]]
        assert len({other["record_id"] for other in equal}) == len(equal) >= (2 if row["payload"] else 0)
    silver = {row["_record_id"] for game in ("chess", "go") for row in continued.root.silver(game)}
    undecoded = {row["record_id"] for row in continued.root.quarantine()}
    assert {row["record_id"] for row in resent} <= silver | undecoded


@pytest.mark.both_lanes
def test_a_new_version_adds_columns_before_the_origin(continued: Continued) -> None:
    before, after = continued.before.silver_columns("chess"), continued.root.silver_columns("chess")
    own = [name for name in before if name not in _ORIGIN]
    assert after[: len(own)] == own
    assert after[len(own) : -len(_ORIGIN)] == ["tags", "scores", "col_chess_game_3"]
    assert after[-len(_ORIGIN) :] == _ORIGIN


@pytest.mark.both_lanes
def test_a_new_version_adds_a_field_inside_a_nested_message(continued: Continued) -> None:
    devices = [row["device"] for row in continued.root.silver("chess") if row["device"] is not None]
    assert {tuple(device) for device in devices} == {("model", "memory_mb", "os")}
    assert {device["os"] for device in devices} > {None, "linux"}


@pytest.mark.both_lanes
def test_rows_of_an_older_version_have_null_in_columns_that_came_later(continued: Continued) -> None:
    old = by_id(continued.before.silver("chess"))
    later = [row for record_id, row in by_id(continued.root.silver("chess")).items() if record_id in old]
    assert len(later) == len(old) > 0
    for row in later:
        assert (row["tags"], row["scores"], row["col_chess_game_3"]) == (None, None, None)
        assert row["device"] is None or row["device"]["os"] is None


def test_an_enum_value_of_a_newer_version_has_its_name(continued: Continued) -> None:
    outcomes = {row["outcome"] for row in continued.root.silver("chess")}
    assert "OUTCOME_DRAWN" in outcomes
    assert outcomes <= {None, "OUTCOME_UNSPECIFIED", "OUTCOME_WON", "OUTCOME_LOST", "OUTCOME_DRAWN"}


def test_a_new_game_gets_its_table_in_mid_stream(continued: Continued) -> None:
    (game,) = (game for game in continued.report.games if game.game == "backgammon")
    assert len(continued.root.silver("backgammon")) == game.silver > 0
    assert continued.before.silver("backgammon") == []


@pytest.mark.both_lanes
def test_every_record_is_still_in_exactly_one_place(continued: Continued) -> None:
    source = rows(continued.root.settings.source_path)
    sent = Counter(f"events/{row['partition']}/{row['offset']}" for row in source)
    quarantined = [row["record_id"] for row in continued.root.quarantine()]
    silver = [row["_record_id"] for game in ("backgammon", "chess", "go") for row in continued.root.silver(game)]
    assert Counter(quarantined + silver) == sent
    assert sent.total() == 240 + 175


def test_a_process_that_goes_on_takes_games_and_schemas_that_come_later(root: Root, event: str) -> None:
    chess = root.register("chess", event)
    root.send([wrapper("chess", chess, b""), wrapper("chess", chess + 1, b"")])
    place = root.workplace()
    assert [end.task.game for end in root.run(place).ended] == ["chess"]
    assert root.run(place).ended == ()

    go, newer = root.register("go", f"{event} // go"), root.register("chess", f"{event} // newer")
    root.send([wrapper("go", go, b""), wrapper("chess", chess, b""), wrapper("chess", newer, b"")], 2)
    assert [end.task.game for end in root.run(place).ended] == ["chess", "go"]
    assert [row["_offset"] for row in root.silver("chess")] == [0, 3, 4]
    assert [row["_offset"] for row in root.silver("go")] == [2]
    assert [row["record_id"] for row in root.quarantine()] == ["t/0/1"]
    assert root.run(place).ended == ()


@pytest.mark.both_lanes
def test_upkeep_of_bronze_between_two_runs_stops_no_game_and_doubles_no_row(
    streamed: Root, copy: Callable[..., Root]
) -> None:
    root = copy(streamed, run=STREAM)
    table = DeltaTable(root.layout.bronze)
    table.optimize.compact()
    table.delete("game_name = 'go'")
    report = root.produce(events=20, games=2, versions=1, fault_rate=0)
    assert {end.task.game: end.error for end in root.run().ended} == {"chess": None, "go": None}
    for game in report.games:
        assert len(root.silver(game.game)) == len(streamed.silver(game.game)) + game.silver


def test_a_source_of_bad_records_only_ends_in_quarantine_and_makes_no_game(root: Root) -> None:
    root.send([None, b"\x07\xff", wrapper("", 1, b""), wrapper("a\nb", 1, b"")])
    round_ = root.run()
    assert (round_.ingested.rows_in, round_.ingested.rows_quarantined, round_.ended) == (4, 4, ())
    assert [(row["record_id"], row["cause"]) for row in root.quarantine()] == [
        ("t/0/0", "MALFORMED_WRAPPER"),
        ("t/0/1", "MALFORMED_WRAPPER"),
        ("t/0/2", "INVALID_GAME_NAME"),
        ("t/0/3", "INVALID_GAME_NAME"),
    ]
    assert (root.bronze(), list((root.folder / "silver").glob("*"))) == ([], [])


def test_a_game_whose_first_rows_are_all_bad_has_an_empty_table_that_good_rows_fill(root: Root, event: str) -> None:
    schema_id = root.register("chess", event)
    root.send([wrapper("chess", 77, b""), wrapper("chess", -1, b"")])
    root.run()
    assert (root.silver("chess"), root.silver_columns("chess")) == ([], _ORIGIN)
    root.send([wrapper("chess", schema_id, root.message(schema_id)(name="ann", score=7).SerializeToString())], 2)
    root.run()
    assert root.silver_columns("chess") == ["name", "score", "at", *_ORIGIN]
    assert [(row["name"], row["score"], row["_offset"]) for row in root.silver("chess")] == [("ann", 7, 2)]
    assert [row["record_id"] for row in root.quarantine()] == ["t/0/0", "t/0/1"]


def test_an_empty_source_is_no_error_and_its_first_records_arrive(root: Root, event: str) -> None:
    root.send([])
    first = root.run()
    assert (first.ingested.rows_in, first.ended, first.plan.tasks) == (0, (), ())
    schema_id = root.register("chess", event)
    root.send([wrapper("chess", schema_id, b"")])
    assert root.run().ingested.rows_bronze == 1
    assert [row["_record_id"] for row in root.silver("chess")] == ["t/0/0"]


def test_no_source_is_an_error_that_says_what_to_do(root: Root) -> None:
    with pytest.raises(SourceMissing) as failure:
        root.run()
    assert failure.value.condition == "SOURCE_MISSING"
    assert failure.value.message == f"There is no Delta table of wrappers at {root.folder}/source."
    assert "demux produce" in failure.value.remedy


def test_a_source_without_the_column_value_is_an_error_that_names_its_columns(root: Root) -> None:
    write_deltalake(root.settings.source_path, pa.table({"body": pa.array([b""]), "key": pa.array([b""])}))
    with pytest.raises(SourceMissing, match="no BINARY column `value`; it has body, key"):
        root.run()


def test_a_source_with_the_column_value_alone_gives_each_record_an_id(
    done: Root, copy: Callable[[Root], Root], tmp_path: Path
) -> None:
    root = copy(done)
    bare = tmp_path / "bare"
    values = [row["value"] for row in rows(done.settings.source_path)]
    write_deltalake(str(bare), pa.table({"value": pa.array(values, pa.binary())}))
    other = Root.at(
        root.spark, tmp_path / "other", source={"path": str(bare)}, registry={"path": f"{root.folder}/registry"}
    )
    other.run()
    ids = [row["record_id"] for row in other.bronze()] + [
        row["record_id"] for row in other.quarantine() if row["stage"] == "bronze"
    ]
    assert len(set(ids)) == len(ids) == 240
    for game in ("chess", "go"):
        assert len(other.silver(game)) == len(root.silver(game))
    assert columns(other.layout.bronze) == columns(root.layout.bronze)


def _new(continued: Continued, bronze: Rows) -> Rows:
    known = by_id(continued.before.bronze())
    return [row for row in bronze if row["record_id"] not in known]


def _resent(continued: Continued) -> Rows:
    """Return the bronze rows of messages sent again: the producer sends them first, a microsecond apart."""
    earlier = {(row["key"], row["payload"], row["schema_id"]) for row in continued.before.bronze()}
    start = min(row["timestamp"] for row in _new(continued, continued.root.bronze()))
    return [
        row
        for row in _new(continued, continued.root.bronze())
        if (row["timestamp"] - start).total_seconds() < 25e-6
        and (row["key"], row["payload"], row["schema_id"]) in earlier
    ]

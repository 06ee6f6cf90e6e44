"""The fleet by Spark's own writer: the same tables as by files and by streams, wherever the root is."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable as TableBySpark
from deltalake import DeltaTable

from demux.core.settings.settings import Settings
from deserializer.fleet.round import Fleet
from deserializer.silver.spark_table import SilverBySpark
from tests.support.flow.fleet import EVENT, FLEET, STREAM, crash_after, settled, without_errors
from tests.support.flow.root import Root, wrapper

Copy = Callable[..., Root]
SPARK = {**FLEET, "sink": "spark"}


def with_run(root: Root, **changes: object) -> Root:
    return Root.at(root.spark, root.folder, run={**FLEET, **changes})


def elsewhere(root: Root, link: str = "/lake", **changes: object) -> Root:
    """The same root as Spark finds it on another file system, whose paths no other program of this machine knows."""
    table = f"t{abs(hash(str(root.folder))) % 10**9}"
    hadoop = root.spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set(f"fs.viewfs.mounttable.{table}.link.{link}", root.folder.as_uri())
    settings = {
        "root": f"viewfs://{table}{link}",
        "store": {"mounts": {f"viewfs://{table}{link}": str(root.folder)}},
        "registry": {"path": root.settings.registry_path},
        "run": {**FLEET, **changes},
    }
    return Root(root.spark, Settings.model_validate(settings))


def writers(root: Root, game: str) -> list[str]:
    """Who made each commit of the game's table, the newest first."""
    history: list[dict[str, Any]] = DeltaTable(root.silver_path(game)).history()
    return ["spark" if "Spark" in commit.get("engineInfo", "") else "files" for commit in history]


# its small sibling: test_append.py, each writer after each
@pytest.mark.long
@pytest.mark.parametrize(
    "order",
    [["files", "stream", "spark", "files"], ["spark", "stream", "stream", "spark", "files", "stream"]],
    ids=["once", "again"],
)
def test_a_root_changes_its_sink_and_its_engine_at_any_time(
    sent: Root, copy: Copy, tmp_path: Path, order: Sequence[str]
) -> None:
    streams, mixed = copy(sent, run=STREAM), sent.copied_to(tmp_path / "mixed")
    for number, writer in enumerate(order):
        mixed = with_run(mixed, **({"engine": "stream"} if writer == "stream" else {"sink": writer}))
        for root in (streams, mixed) if number else ():
            root.produce(events=40, games=2, versions=2, fault_rate=0.3)
        without_errors(mixed.run())
        assert settled(mixed) == len(mixed.source()), f"round {number}, {writer}"
    without_errors(streams.run())
    assert mixed.everything() == streams.everything()
    assert with_run(mixed, sink="spark").run().ended == ()


@pytest.mark.slow
def test_a_table_that_asks_more_of_its_writers_goes_through_spark_and_its_neighbours_do_not(
    streamed: Root, copy: Copy, tmp_path: Path
) -> None:
    root, streams = copy(streamed, run=FLEET), streamed.copied_to(tmp_path / "streams", run=STREAM)
    for each in (root, streams):
        each.produce(events=60, games=2, versions=2, fault_rate=0.3)
    without_errors(root.run())
    assert (writers(root, "chess")[0], writers(root, "go")[0]) == ("files", "files")
    # the fleet has it by now, and must be able to write it, and to give it back
    root.spark.sql(f"ALTER TABLE delta.`{root.silver_path('chess')}` ADD CONSTRAINT whole CHECK (_offset >= 0)")
    for engine, of_go in (("fleet", "files"), ("stream", "spark"), ("stream", "spark")):
        for each in (root, streams):
            each.produce(events=60, games=2, versions=3, fault_rate=0.3)
        without_errors(with_run(root, engine=engine).run())
        assert (writers(root, "chess")[0], writers(root, "go")[0]) == ("spark", of_go)
    without_errors(streams.run())
    assert root.everything() == streams.everything()


def test_spark_computes_generated_columns_and_checks_constraints_and_no_file_is_left(root: Root) -> None:
    root = with_run(root, retries=0)
    schema_id, table = root.register("chess", EVENT), root.silver_path("chess")
    message = root.message(schema_id)

    def sent(first: int, *names: str) -> dict[str, object]:
        records = [wrapper("chess", schema_id, message(name=name).SerializeToString()) for name in names]
        root.send(records, first_offset=first)
        return {end.task.game: end.error for end in root.run().ended}

    assert sent(0, "ann") == {"chess": None}
    columns = root.spark.read.format("delta").load(table).schema
    shutil.rmtree(table)
    made = TableBySpark.create(root.spark).location(table).addColumns(columns)
    made.addColumn("loud", "STRING", generatedAlwaysAs="upper(name)").execute()
    root.spark.sql(f"ALTER TABLE delta.`{table}` ADD CONSTRAINT known CHECK (name <> 'eve')")
    assert sent(1, "bob") == {"chess": None}
    error = sent(2, "cid", "eve")["chess"]
    assert "known" in str(error)
    assert [(row["name"], row["loud"]) for row in root.silver("chess")] == [("ann", "ANN"), ("bob", "BOB")]
    # those of Spark have a number in their name, also those of a write that failed
    assert [path.name for path in Path(table).glob("*.parquet") if "-c000" not in path.name] == []


def test_a_root_elsewhere_has_the_same_tables_and_may_come_back(
    sent: Root, done: Root, copy: Copy, tmp_path: Path
) -> None:
    here, undisturbed = copy(sent), done.copied_to(tmp_path / "undisturbed")
    away = elsewhere(here)
    with crash_after(SilverBySpark, "append"), pytest.raises(KeyboardInterrupt):
        away.run()
    # nothing is remembered of the crash but what the tables say
    without_errors(away.run())
    assert here.everything() == done.everything()
    for number, each in enumerate((elsewhere(here, engine="stream"), with_run(here))):
        for root in (here, undisturbed):
            root.produce(events=40, games=3, versions=2 + number % 2, fault_rate=0.3)
        without_errors(each.run())
        assert settled(here) == len(here.source()), f"round {number}"
    without_errors(undisturbed.run())
    assert here.everything() == undisturbed.everything()


@pytest.mark.parametrize(
    "is_here",
    [
        pytest.param(True, id="here", marks=pytest.mark.oldest),
        # in `make test`: tests/store/test_hostile_names_and_pages.py
        pytest.param(False, id="elsewhere", marks=pytest.mark.long),
    ],
)
def test_hostile_names_of_games_and_folders_are_only_names(root: Root, is_here: bool) -> None:
    fleet = with_run(root, sink="spark") if is_here else elsewhere(root, "/a b, %20 c")
    names = ["chess", "a b%20c#d?", "[x]{y,z}*\\w", "将棋 'q' `b`"]
    ids = {game: root.register(game, EVENT) for game in names}
    payload = root.message(ids["chess"])(name="ann").SerializeToString()
    for number in range(2):
        records = [wrapper(game, ids[game], data) for game in names for data in (payload, b"\xff")]
        root.send(records, first_offset=number * len(records))
        without_errors(fleet.run())
    assert [len(root.silver(game)) for game in names] == [2, 2, 2, 2]
    assert sorted(row["game_name"] for row in root.quarantine()) == sorted(names * 2)


def test_a_round_without_new_rows_has_no_job_and_no_commit(taken_in: Root, copy: Copy) -> None:
    root = copy(taken_in, run=SPARK)
    place = root.workplace()
    fleet = Fleet(root.spark, root.layout, place.schemas, 10**6, 2, sink=root.settings.run.sink)
    games = ["chess", "go"]
    first = tuple(fleet.decode(games, datetime.now(timezone.utc)))
    assert [one.report is not None and one.report.rows_in > 0 for one in first] == [True, True]
    tracker = root.spark.sparkContext.statusTracker()
    before = max(tracker.getJobIdsForGroup(None)), [len(writers(root, game)) for game in games]
    second = tuple(fleet.decode(games, datetime.now(timezone.utc)))
    assert [one.report is not None and one.report.rows_in for one in second] == [0, 0]
    assert (max(tracker.getJobIdsForGroup(None)), [len(writers(root, game)) for game in games]) == before


def test_a_new_game_elsewhere_begins_where_bronzes_log_begins_later(root: Root) -> None:
    away = elsewhere(root)
    names = ["chess", "a b%20c#d?"]
    ids = {game: root.register(game, EVENT) for game in names}
    payload = root.message(ids["chess"])(name="ann").SerializeToString()
    for number in range(3):
        root.send([wrapper(game, ids[game], payload) for game in names], first_offset=2 * number)
        away.workplace().ingest()
    log = root.folder / "bronze" / "_delta_log"
    DeltaTable(root.layout.bronze).create_checkpoint()
    for old in sorted(log.glob("*.json"))[:-1]:
        old.unlink()
    without_errors(away.run())
    assert [len(root.silver(game)) for game in names] == [3, 3]


def test_a_position_behind_a_checkpoint_is_found(taken_in: Root, done: Root, copy: Copy, tmp_path: Path) -> None:
    root, undisturbed = copy(taken_in, run=SPARK), done.copied_to(tmp_path / "undisturbed")
    without_errors(root.run())
    for table in (root.silver_path("chess"), root.layout.quarantine):
        root.spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('someone' = 'else')")
        DeltaTable(table).create_checkpoint()
        for old in sorted(Path(table, "_delta_log").glob("*.json"))[:-1]:
            old.unlink()
    for each in (root, undisturbed):
        each.produce(events=40, games=2, versions=2, fault_rate=0.3)
    without_errors(root.run())
    without_errors(undisturbed.run())
    assert root.everything() == undisturbed.everything()

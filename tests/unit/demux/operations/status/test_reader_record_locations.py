"""Where every record is, read from tables made by hand."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from demux.core.causes import Cause, Stage
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.control.games_and_rounds import Control, KnownGame, TaskOutcome, TaskRecord
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.schemas.subject_choice import GameSchemas
from demux.core.settings.games import SubjectRule
from demux.core.tables import REMOVED, SCHEMAS, SILVER_ORIGIN
from demux.operations.status.model import Status
from demux.operations.status.reader import StatusReader
from demux.operations.status.summary import status_of
from tests.support.spark.tables import bronze_row, position, quarantine_row, write, write_bronze, write_quarantine

NOW = datetime(2025, 3, 30, tzinfo=timezone.utc)
SILVER = Struct((Column("name", Primitive.STRING, 1), *SILVER_ORIGIN))


def test_an_empty_root_has_no_games(tmp_path: Path) -> None:
    found = looked(Layout(str(tmp_path)))
    assert (found.games, found.no_bronze, found.notes) == ((), {}, ())


def test_every_record_is_counted_where_it_is(tmp_path: Path) -> None:
    layout = Layout(str(tmp_path))
    hostile = "a'b; drop table x"
    write_bronze(layout.bronze, *(bronze_row("chess", offset) for offset in range(5)))
    write_bronze(layout.bronze, *(bronze_row(hostile, offset) for offset in range(5, 8)), bronze_row("new", 8))
    for game, rows in (("chess", [(0, 7), (1, 7), (2, 8)]), (hostile, [(5, 9)])):
        origin = [{f"_{k}": v for k, v in position(at).items()} | {"_schema_id": schema_id} for at, schema_id in rows]
        write(layout.silver(names_of(game).key), SILVER, origin)
    write_quarantine(
        layout.quarantine,
        quarantine_row("chess", 3, Cause.UNKNOWN_SCHEMA, 99),
        quarantine_row("chess", 4, Cause.MALFORMED_PAYLOAD, 7),
        # a name that was refused is nobody's, even when a game is called so
        quarantine_row("chess", 20, Cause.INVALID_GAME_NAME, 7) | {"stage": Stage.BRONZE.value},
        quarantine_row("chess", 21, Cause.MALFORMED_WRAPPER, None) | {"stage": Stage.BRONZE.value, "game_name": None},
        quarantine_row("chess", 22, Cause.MALFORMED_WRAPPER, None) | {"stage": Stage.BRONZE.value, "game_name": None},
    )
    retired = {"reason": "retired", "game_name": "chess"}
    forgotten = {"reason": "forgotten", "game_name": hostile}
    write(layout.removed, REMOVED, [{**retired, **position(30)}, {**retired, **position(31)}, forgotten])
    # the same id in two registries is two schemas, and one of a registry may have two subjects
    schemas = [
        ("default", 7, "chess", 1),
        ("default", 7, "a", 3),
        ("default", 8, "chess", 2),
        ("default", 9, "chess", 4),
        ("asia", 9, "x", 5),
        ("asia", 7, "x", 6),
    ]
    write(
        layout.schemas,
        SCHEMAS,
        [dict(zip(("registry", "schema_id", "subject", "version"), each, strict=True)) for each in schemas],
    )
    control = Control(None, layout)
    clusters = {"chess": "cluster_001", hostile: "cluster_002", "gone": None}
    control.replace_games(KnownGame(game, cluster, "p", NOW) for game, cluster in clusters.items())
    control.close_round(
        [
            TaskRecord("r", "chess", TaskOutcome.DONE, 5, 3, 2, (7, 8, 99), 2.5, None, None, NOW),
            TaskRecord("r", hostile, TaskOutcome.FAILED, 0, 0, 0, (9,), 0.5, "TASK_FAILED", "It broke. Mend it.", NOW),
        ],
        1,
    )

    found = looked(layout)
    places = [
        (one.game, one.cluster, one.bronze, one.retired, one.table and one.table.rows, one.quarantined, one.lag_rows)
        for one in found.games
    ]
    causes = {"UNKNOWN_SCHEMA": 1, "MALFORMED_PAYLOAD": 1}
    assert places == [
        (hostile, "cluster_002", 3, 0, 1, {}, 2),
        ("chess", "cluster_001", 5, 2, 3, causes, 2),
        ("gone", None, 0, 0, None, {}, 0),
        ("new", None, 1, 0, None, {}, 1),
    ]
    assert [(one.versions, one.seconds) for one in found.games] == [((5,), 0.5), ((1, 2), 2.5), ((), None), ((), None)]
    failures = [(one.game, one.failure.condition, one.failure.sentence) for one in found.games if one.failure]
    assert failures == [(hostile, "TASK_FAILED", "It broke. Mend it.")]
    assert found.no_bronze == {"INVALID_GAME_NAME": 1, "MALFORMED_WRAPPER": 2}


def looked(layout: Layout) -> Status:
    schemas = {"a'b; drop table x": "asia"}
    return status_of(
        layout.root,
        StatusReader(layout).read(),
        NOW,
        schemas_of=lambda game: GameSchemas(schemas.get(game, "default"), SubjectRule(game)),
    )

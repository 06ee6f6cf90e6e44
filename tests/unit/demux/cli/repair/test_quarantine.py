"""`demux quarantine list` and `show` on tables of this machine, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner, Result

from demux.cli.app import app
from demux.core.causes import Cause, Stage
from demux.core.columns.arrow import arrow_fields
from demux.core.errors import DemuxError, GameUnknown, SettingsInvalid
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.protocol import RegisteredSchema
from demux.core.root.layout import Layout
from demux.core.tables import GAMES, QUARANTINE, SCHEMAS
from demux.operations.quarantine import reader as reading
from tests.support.spark.tables import bronze_row, position, quarantine_row, write, write_bronze, write_quarantine

Quarantine = Callable[..., Result]

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=timezone.utc)
EVENT = 'syntax = "proto3"; package g; message Event { string name = 1; int32 score = 2; }'
ANN, BROKEN = b"\x0a\x03ann\x10\x05", b"\x0a\x03ann\x10"
HOSTILE = "go\x1b[31m\u202e"


def set_aside(
    game: str, offset: int, cause: Cause, schema_id: int | None, payload: bytes, **more: Any
) -> dict[str, Any]:
    return quarantine_row(game, offset, cause, schema_id, payload) | {"quarantined_at": NOW, **more}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(str(tmp_path / "root"))
    write_bronze(layout.bronze, bronze_row("chess", 1))
    write(layout.games, GAMES, [{"game_name": HOSTILE}])
    compiled = compile_schema(RegisteredSchema(1, "chess", 1, EVENT, "g/event.proto"))
    kept = {"schema_id": 1, "subject": "chess", "version": 1, "message": compiled.message, "registry": "default"}
    write(layout.schemas, SCHEMAS, [{**kept, "descriptor_set": compiled.descriptor_set}])
    write_quarantine(
        layout.quarantine,
        *(set_aside("chess", offset, Cause.UNKNOWN_SCHEMA, 99, ANN) for offset in range(2, 5)),
        set_aside("chess", 1, Cause.MALFORMED_PAYLOAD, 1, BROKEN, quarantined_at=NOW + timedelta(hours=1)),
    )
    write_quarantine(
        layout.quarantine,
        set_aside(HOSTILE, 7, Cause.MALFORMED_PAYLOAD, 1, b"\x0a\x05\x1b[31m", sentence="It has \x1b[31m in it."),
        {
            **position(8),
            "stage": Stage.BRONZE.value,
            "cause": Cause.INVALID_GAME_NAME.value,
            "game_name": "../etc",
            "sentence": "No name.",
            "bytes": b"\x0a\x06../etc\x10\x01",
            "key": b"k\x00",
            "headers": [{"key": "trace", "value": b"\xff"}],
            "quarantined_at": NOW - timedelta(days=1),
        },
    )
    return layout


@pytest.fixture
def quarantine(layout: Layout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Quarantine:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")

    def call(*words: str) -> Result:
        result = CliRunner().invoke(app, ["quarantine", *words, "--root", layout.root])
        if isinstance(result.exception, DemuxError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result

    return call


def test_list_groups_by_cause_game_and_schema_with_the_newest_record_decoded(quarantine: Quarantine) -> None:
    assert quarantine("list").output.splitlines() == [
        "UNKNOWN_SCHEMA chess schema 99: 3 rows, 2026-03-01 12:00:00 UTC",
        "    Then.",
        '    newest: t/0/4: 1: "ann", 2: 5; to the end',
        "INVALID_GAME_NAME without a game: 1 row, 2026-02-28 12:00:00 UTC",
        "    No name.",
        '    newest: t/0/8: 1: "../etc", 2: 1; to the end',
        "MALFORMED_PAYLOAD chess schema 1: 1 row, 2026-03-01 13:00:00 UTC",
        "    Then.",
        '    newest: t/0/1: 1 name: "ann"; stops at byte 6: a number does not end',
        "MALFORMED_PAYLOAD go\\u001b[31m\\u202e schema 1: 1 row, 2026-03-01 12:00:00 UTC",
        "    It has \\u001b[31m in it.",
        '    newest: t/0/7: 1 name: "\\u001b[31m"; to the end',
        "6 rows in quarantine, in 4 groups",
    ]


def test_list_says_how_many_groups_it_does_not_show(quarantine: Quarantine) -> None:
    assert quarantine("list", "--limit", "1").output.splitlines()[-1] == (
        "6 rows in quarantine, in 4 groups; 3 rows in 3 groups more: --limit shows them"
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "rows"),
    [
        (("--game", "chess"), 4),
        (("--game", HOSTILE), 1),
        (("--cause", "MALFORMED_PAYLOAD"), 2),
        (("--cause", "MALFORMED_PAYLOAD", "--cause", "UNKNOWN_SCHEMA", "--game", "chess"), 4),
        (("--since", "2026-03-01"), 5),
        (("--since", "2026-03-01T13:00"), 1),
        (("--since", "0s"), 0),
    ],
)
def test_only_what_is_meant_is_listed_and_shown(quarantine: Quarantine, words: tuple[str, ...], rows: int) -> None:
    assert json.loads(quarantine("list", "--json", *words).output)["rows"] == rows
    found = json.loads(quarantine("show", "--json", *words).output)
    assert (found["rows"], len(found["records"])) == (rows, rows)


def test_list_as_json_has_all_of_it(quarantine: Quarantine) -> None:
    found = json.loads(quarantine("list", "--json", "--cause", "MALFORMED_PAYLOAD", "--game", "chess").output)
    assert found == {
        "rows": 1,
        "groups": [
            {
                "cause": "MALFORMED_PAYLOAD",
                "stage": "silver",
                "game": "chess",
                "schema_id": 1,
                "schema_guid": None,
                "several_schemas": False,
                "rows": 1,
                "first": "2026-03-01T13:00:00+00:00",
                "last": "2026-03-01T13:00:00+00:00",
                "sentence": "Then.",
                "newest": {
                    "record_id": "t/0/1",
                    "bytes": 6,
                    "message": "g.Event",
                    "fields": [{"number": 1, "name": "name", "value": '"ann"'}],
                    "more_fields": 0,
                    "stops": {"byte": 6, "reason": "a number does not end"},
                },
            }
        ],
        "more_groups": 0,
    }


def test_show_has_all_that_is_known_of_a_record(quarantine: Quarantine) -> None:
    assert quarantine("show", "t/0/8").output.splitlines() == [
        "t/0/8 INVALID_GAME_NAME",
        "    No name.",
        "    quarantined 2026-02-28 12:00:00 UTC at stage bronze",
        "    from delta, topic t, partition 0, offset 8, 2025-01-02 03:04:05 UTC",
        '    key "k\\u0000"',
        "    header trace: 0xff",
        "    10 bytes: 0a062e2e2f6574631001",
        "    without a schema, as far as it can be read:",
        '      1: "../etc"',
        "      2: 1",
        "      to the end",
    ]
    assert quarantine("show", "t/0/1").output.splitlines()[-4:] == [
        "    6 bytes: 0a03616e6e10",
        "    as g.Event:",
        '      1 name: "ann"',
        "      stops at byte 6: a number does not end",
    ]


def test_show_takes_the_newest_records_first(quarantine: Quarantine) -> None:
    lines = quarantine("show", "--limit", "2", "--game", "chess").output.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == [
        "t/0/1 MALFORMED_PAYLOAD chess schema 1",
        "t/0/2 UNKNOWN_SCHEMA chess schema 99",
        "the newest 2 of 4 rows: --limit shows more",
    ]


def test_what_is_not_there_is_told(quarantine: Quarantine) -> None:
    with pytest.raises(SettingsInvalid, match=r"Quarantine has no such record 't/0/9'"):
        quarantine("show", "t/0/9")
    with pytest.raises(GameUnknown, match=r"No game 'Chess' is known. Did you mean 'chess'?"):
        quarantine("list", "--game", "Chess")
    with pytest.raises(SettingsInvalid, match="--since '2026-02-30' is no date"):
        quarantine("list", "--since", "2026-02-30")
    with pytest.raises(SettingsInvalid, match="never became a row of bronze"):
        quarantine("replay", "--cause", "MALFORMED_WRAPPER")
    with pytest.raises(SettingsInvalid, match="have no game"):
        quarantine("drop", "--older-than", "1d", "--game", "chess", "--stage", "bronze")
    with pytest.raises(SettingsInvalid, match="in the future"):
        quarantine("drop", "--older-than", "9000-01-01")
    assert quarantine("show", "--since", "0s").output == "nothing in quarantine is meant by this\n"


def test_a_time_that_no_calendar_has_hides_nothing_else(quarantine: Quarantine, layout: Layout) -> None:
    late = set_aside("chess", 11, Cause.UNKNOWN_SCHEMA, 99, ANN)
    table = pa.Table.from_pylist([late], pa.schema(arrow_fields(QUARANTINE)))
    at = pa.array([2**62], pa.timestamp("us", tz="UTC"))
    write_deltalake(
        layout.quarantine, table.set_column(table.column_names.index("timestamp"), "timestamp", at), mode="append"
    )
    assert "    from delta, topic t, partition 0, offset 11" in quarantine("show", "t/0/11").output.splitlines()


def test_a_root_whose_tables_only_spark_opens_is_refused_and_one_without_tables_is_empty(tmp_path: Path) -> None:
    mount = ["--set", f"store.mounts={{hdfs://host: {tmp_path}}}"]
    result = CliRunner().invoke(app, ["quarantine", "list", "--root", "hdfs://host/demux", *mount])
    assert isinstance(result.exception, SettingsInvalid)
    assert "cannot be opened without Spark" in result.exception.message
    empty = CliRunner().invoke(app, ["quarantine", "list", "--root", str(tmp_path)])
    assert (empty.exit_code, empty.output) == (0, "0 rows in quarantine, in 0 groups\n")
    assert not (tmp_path / "nowhere").exists()


def test_few_columns_are_read_of_all_rows_and_whole_rows_only_of_what_is_shown(
    quarantine: Quarantine, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_quarantine(
        layout.quarantine, *(set_aside("chess", number, Cause.UNKNOWN_SCHEMA, 99, ANN) for number in range(10, 2000))
    )
    read: list[tuple[int, int]] = []
    original = reading._batches

    def counted(file: Any, columns: Any, rows: int, groups: Any = None) -> Any:
        for batch in original(file, columns, rows, groups):
            read.append((batch.num_columns, batch.num_rows))
            yield batch

    monkeypatch.setattr(reading, "_batches", counted)
    quarantine("list")
    whole = [rows for columns, rows in read if columns > 7]
    # rows with their bytes come in small batches, and the newest group's is in the last one of its file
    assert max(whole) <= 64
    assert all(columns == 6 for columns, _ in read if columns < 8)
    assert sum(rows for columns, rows in read if columns == 6) == 1996
    read.clear()
    quarantine("show", "--limit", "3", "--cause", "MALFORMED_PAYLOAD")
    assert sum(rows for columns, rows in read if columns > 7) <= 6

from __future__ import annotations

import pytest

from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.protocol import RegisteredSchema
from producer.schemas import HOSTILE, FieldKind, columns, games, message_name, proto_path, proto_text

CHESS, GO = games(2)


def test_the_first_version_has_what_every_game_has_and_a_column_of_its_own() -> None:
    assert [(column.number, column.name, column.kind.value) for column in columns(CHESS, 1)] == [
        (1, "game_name", "string"),
        (2, "user_name", "string"),
        (3, "event_timestamp", "google.protobuf.Timestamp"),
        (4, "is_connection_stable", "bool"),
        (20, "col_chess_game_1", "int64"),
    ]


def test_games_differ_in_columns_and_types() -> None:
    assert [column.name for column in columns(GO, 1)][4:] == ["col_go_game_1", "col_go_game_2"]
    assert {columns(game, 1)[4].kind for game in games(20)} == set(FieldKind) - {
        FieldKind.TIMESTAMP,
        FieldKind.DEVICE,
        FieldKind.OUTCOME,
        FieldKind.TAGS,
        FieldKind.SCORES,
    }


def test_versions_add_a_message_an_enum_a_list_a_map_and_columns() -> None:
    def added(version: int) -> list[str]:
        earlier = columns(CHESS, version - 1)
        return [column.name for column in columns(CHESS, version) if column not in earlier]

    assert added(2) == ["device", "outcome", "col_chess_game_2"]
    assert added(3) == ["tags", "scores", "col_chess_game_3"]
    assert added(4) == ["col_chess_game_4"]


@pytest.mark.parametrize("game", games(4, len(HOSTILE)), ids=lambda game: str(game.name))
def test_a_number_means_the_same_in_every_version(game: object) -> None:
    (mine,) = [one for one in games(4, len(HOSTILE)) if one == game]
    for version in range(1, 8):
        assert set(columns(mine, version)) <= set(columns(mine, version + 1))


@pytest.mark.parametrize("version", [1, 2, 3, 9])
@pytest.mark.parametrize("name", ["chess", "../../etc", "象棋"])
def test_every_schema_compiles(name: str, version: int) -> None:
    (game,) = [one for one in games(1, len(HOSTILE)) if one.name == name]
    schema = RegisteredSchema(1, name, version, proto_text(game, version), proto_path(game))
    assert compile_schema(schema).message == message_name(game)


def test_a_game_keeps_its_columns_whatever_the_number_of_games() -> None:
    assert games(3, 2)[3:] == games(30, 2)[30:]
    assert [game.name for game in games(22)][18:] == ["sailing", "karting", "game_021", "game_022"]


def test_no_two_games_share_a_key() -> None:
    everyone = games(100, len(HOSTILE))
    assert len({game.key for game in everyone}) == len({game.name for game in everyone}) == 110


def test_the_third_version_in_full() -> None:
    assert proto_text(CHESS, 3) == (
        """\
syntax = "proto3";
package games.chess;
import "google/protobuf/timestamp.proto";

message Event {
  string game_name = 1;
  string user_name = 2;
  google.protobuf.Timestamp event_timestamp = 3;
  bool is_connection_stable = 4;
  Device device = 5;
  Outcome outcome = 6;
  repeated string tags = 7;
  map<string, int64> scores = 8;
  int64 col_chess_game_1 = 20;
  double col_chess_game_2 = 21;
  bool col_chess_game_3 = 22;

  message Device {
    string model = 1;
    int32 memory_mb = 2;
    string os = 3;
  }

  enum Outcome {
    OUTCOME_UNSPECIFIED = 0;
    OUTCOME_WON = 1;
    OUTCOME_LOST = 2;
    OUTCOME_DRAWN = 3;
  }
}
"""
    )

"""What commit files say: who grew, and who wrote."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.delta.log import AddedFile, Commit, PartitionGrowth, commit_in, file_path, transaction_in

values = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=10)


def add(game: str | None, *, data_change: bool = True, stats: str = "{}") -> str:
    action = {
        "add": {
            "path": "game_name=x/part-0.parquet",
            "partitionValues": {"game_name": game},
            "dataChange": data_change,
            "stats": stats,
        }
    }
    return json.dumps(action, separators=(",", ":"), ensure_ascii=False)


def commit(*lines: str) -> str:
    return "\n".join(lines) + "\n"


def grown(*commits: str) -> set[str]:
    read = (commit_in(version, text, "game_name") for version, text in enumerate(commits))
    return set(PartitionGrowth(len(commits) - 1, tuple(read)).partitions or ())


def test_games_that_got_files_grew() -> None:
    commits = [commit('{"commitInfo":{"operation":"WRITE"}}', add("chess"), add("go")), commit(add("chess"))]
    assert grown(*commits) == {"chess", "go"}


def test_names_come_back_exactly_as_they_are() -> None:
    hostile = ["../../etc", 'quote"s', "a%2Fb", "将棋", "Chess", "chess"]
    assert grown(commit(*map(add, hostile))) == set(hostile)


@pytest.mark.parametrize(
    "line",
    [
        add("chess", data_change=False),
        add(None),
        '{"remove":{"path":"game_name=chess/part-0.parquet","dataChange":true,"partitionValues":{"game_name":"chess"}}}',
        '{"metaData":{"id":"1","partitionColumns":["game_name"]}}',
        '{"txn":{"appId":"q","version":1}}',
        "",
    ],
    ids=["a rewrite", "the NULL partition", "a removal", "metadata", "a transaction", "an empty line"],
)
def test_other_actions_let_no_game_grow(line: str) -> None:
    assert grown(commit(line)) == set()


def test_a_file_without_the_flag_counts_as_new_rows() -> None:
    assert grown('{"add":{"path":"p","partitionValues":{"game_name":"chess"}}}') == {"chess"}


def test_a_table_that_is_not_partitioned_by_the_column_has_no_such_values() -> None:
    assert commit_in(0, commit(add("chess")), "another").added[0].partition is None


@given(st.lists(values, max_size=5), values)
def test_whatever_text_stands_in_a_commit_the_games_are_found(games: list[str], topic: str) -> None:
    # the least and greatest values of every text column are in the file's statistics
    stats = json.dumps({"maxValues": {"topic": topic}}, ensure_ascii=False)
    assert grown(commit(*(add(game, stats=stats) for game in games))) == set(games)


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85"])
def test_a_line_separator_inside_a_text_does_not_end_the_line(separator: str) -> None:
    stats = json.dumps({"maxValues": {"topic": f"a{separator}b"}}, ensure_ascii=False)
    assert grown(commit(add("chess", stats=stats))) == {"chess"}


def test_a_transaction_is_found_by_its_application() -> None:
    text = commit('{"commitInfo":{}}', '{"txn":{"appId":"other","version":9}}', '{"txn":{"appId":"mine","version":4}}')
    assert transaction_in(text, "mine") == 4
    assert transaction_in(text, "nobody") is None


def test_a_transaction_is_found_behind_a_line_separator_inside_a_text() -> None:
    text = commit(json.dumps({"commitInfo": {"userMetadata": 'a\u2028{"txn"'}}, ensure_ascii=False))
    assert transaction_in(text, "mine") is None


def test_a_commit_tells_its_files_as_the_file_system_has_them() -> None:
    action = {
        "add": {
            "path": "game_name=a%2520b/part%200.parquet",
            "partitionValues": {"game_name": "a b"},
            "size": 700,
            "dataChange": True,
            "stats": '{"numRecords":3}',
            "deletionVector": {"storageType": "u"},
        }
    }
    removal = (
        '{"remove":{"path":"game_name=a%2520b/old.parquet","dataChange":true,"partitionValues":{"game_name":"a b"}}}'
    )
    assert commit_in(4, commit(json.dumps(action, separators=(",", ":")), removal), "game_name") == Commit(
        4,
        (AddedFile("game_name=a%20b/part 0.parquet", "a b", 700, 3, whole=False),),
        {"game_name=a%20b/old.parquet": "a b"},
    )


@pytest.mark.parametrize(
    ("in_log", "path"),
    [
        ("game_name=a%3Ab/part.parquet", "s3://lake/bronze/game_name=a%3Ab/part.parquet"),
        ("s3://other/part.parquet", "s3://other/part.parquet"),
        ("/elsewhere/part.parquet", "/elsewhere/part.parquet"),
    ],
)
def test_a_file_of_a_table_is_below_it_unless_the_log_says_where(in_log: str, path: str) -> None:
    assert file_path("s3://lake/bronze", in_log) == path

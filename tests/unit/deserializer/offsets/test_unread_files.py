"""What a game has still to read: every row once, whatever the log does and wherever a round stops."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.delta.log import AddedFile, Commit
from demux.core.errors import BronzeRewritten
from demux.core.streaming.bronze_offset import START, BronzeOffset
from deserializer.offsets.unread_files import CommitsByGame, pending, take


def file(path: str, game: str = "chess", rows: int = 10) -> AddedFile:
    return AddedFile(path, game, 1000, rows)


def paths(commits: list[Commit], since: BronzeOffset = START, game: str = "chess") -> list[str]:
    return [file.path for piece in pending(CommitsByGame(commits), game, since) for file in piece.files]


def test_a_game_reads_its_own_files_in_order() -> None:
    commits = [
        Commit(0, (file("a"), file("x", "go"), file("b"))),
        Commit(1, (file("y", "go"),)),
        Commit(2, (file("c"),)),
    ]
    pieces = pending(CommitsByGame(commits), "chess", START)
    assert [(piece.files[0].path, piece.after) for piece in pieces] == [
        ("a", BronzeOffset(0, 1)),
        ("b", BronzeOffset(1)),
        ("c", BronzeOffset(3)),
    ]


def test_what_was_read_does_not_come_again() -> None:
    commits = [Commit(0, (file("a"), file("b"))), Commit(1, (file("c"),))]
    assert paths(commits, BronzeOffset(0, 1)) == ["b", "c"]
    assert paths(commits, BronzeOffset(1)) == ["c"]
    assert paths(commits, BronzeOffset(2)) == []


@given(
    st.lists(st.lists(st.sampled_from(["chess", "go"]), max_size=4), max_size=6),
    st.integers(1, 40),
)
def test_rounds_with_a_budget_read_every_file_once_and_in_order(games: list[list[str]], budget: int) -> None:
    commits = [
        Commit(version, tuple(file(f"{version}/{index}", game) for index, game in enumerate(added)))
        for version, added in enumerate(games)
    ]
    read: list[str] = []
    position = START
    while pieces := take(pending(CommitsByGame(commits[position.version :]), "chess", position), budget):
        assert len(pieces) == 1 or sum(piece.rows for piece in pieces) <= budget
        read += [file.path for piece in pieces for file in piece.files]
        position = pieces[-1].after
    assert read == paths(commits)


def test_a_file_that_was_taken_away_before_it_was_read_is_not_read() -> None:
    commits = [Commit(0, (file("a"), file("b"))), Commit(1, (), {"a": "chess", "b": "chess"}), Commit(2, (file("c"),))]
    assert paths(commits) == ["c"]


def test_files_written_anew_are_read_in_the_place_of_those_that_waited() -> None:
    commits = [Commit(0, (file("a"), file("b"))), Commit(1, (file("ab"),), {"a": "chess", "b": "chess"})]
    assert paths(commits) == ["ab"]
    assert pending(CommitsByGame(commits), "chess", START)[-1].after == BronzeOffset(2)


def test_files_written_anew_after_they_were_read_are_not_read_again() -> None:
    rewrite = Commit(1, (file("ab"),), {"a": "chess", "b": "chess"})
    assert paths([rewrite], BronzeOffset(1)) == []
    assert paths([rewrite, Commit(2, (file("c"),))], BronzeOffset(1)) == ["c"]


def test_files_written_anew_that_were_read_in_part_are_refused() -> None:
    commits = [Commit(0, (file("a"), file("b"))), Commit(1, (file("ab"),), {"a": "chess", "b": "chess"})]
    with pytest.raises(BronzeRewritten, match="Commit 1 of bronze rewrote 2 files of the game, 1 of them before"):
        pending(CommitsByGame(commits), "chess", BronzeOffset(0, 1))


def test_another_game_that_was_rewritten_changes_nothing() -> None:
    commits = [Commit(0, (file("a"), file("x", "go"))), Commit(1, (file("x2", "go"),), {"x": "go"})]
    assert paths(commits) == ["a"]
    assert paths(commits, game="go") == ["x2"]


def test_files_that_were_written_anew_are_read_all_or_not() -> None:
    commits = [Commit(0, (file("a"),)), Commit(1, (file("a1"), file("a2")), {"a": "chess"}), Commit(2, (file("c"),))]
    first = take(pending(CommitsByGame(commits), "chess", START), 1)
    assert [[file.path for file in piece.files] for piece in first] == [["a1", "a2"]]
    assert paths(commits[2:], first[-1].after) == ["c"]

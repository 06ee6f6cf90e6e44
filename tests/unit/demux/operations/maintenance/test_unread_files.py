"""What the games have still to read is never less than what their engines would read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from demux.core.names import names_of
from demux.operations.maintenance.unread_files import UnreadBronze, UnreadRows, unread_in

MADE = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of bronze: files by game that came and that went, and whether rows changed."""

    added: Mapping[str, Sequence[str]]
    removed: Mapping[str, Sequence[str]]
    changes: bool = True
    is_dated: bool = True


def came(**added: Sequence[str]) -> Commit:
    return Commit(added, {})


def joined(game: str, removed: Sequence[str], added: str) -> Commit:
    return Commit({game: [added]}, {game: removed}, changes=False)


def deleted(game: str, removed: Sequence[str], *added: str) -> Commit:
    return Commit({game: added}, {game: removed})


def text_of(commit: Commit) -> str:
    """The commit's file, its paths escaped as Delta escapes them."""
    lines: list[dict[str, object]] = []
    if commit.is_dated:
        lines.append({"commitInfo": {"timestamp": int(MADE.timestamp() * 1000)}})
    for action, files in (("add", commit.added), ("remove", commit.removed)):
        for game, names in files.items():
            folder = quote(f"game_name={quote(game)}")
            lines += [
                {action: {"path": f"{folder}/{name}", "partitionValues": {"game_name": game}, "dataChange": changes}}
                for name in names
                for changes in [commit.changes]
            ]
    return "\n".join(json.dumps(line, separators=(",", ":")) for line in lines)


def waiting(
    commits: Iterable[Commit], stands: Mapping[str, int], games: Iterable[str], begins: int = 0
) -> dict[str, UnreadRows]:
    texts = [(begins + at, text_of(commit)) for at, commit in enumerate(commits)]
    return unread_in(texts, {names_of(game).key: at for game, at in stands.items()}, games, begins)


def test_files_from_the_commit_on_at_which_a_game_stands_wait_for_it() -> None:
    commits = [came(chess=["a"], go=["b"]), came(chess=["c"]), came(chess=["d"], go=["e"])]
    assert waiting(commits, {"chess": 1, "go": 3}, ["chess", "go"]) == {"chess": UnreadRows(1, MADE, frozenset("cd"))}
    assert waiting(commits, {"chess": 3, "go": 3}, ["chess", "go"]) == {}


def test_a_game_that_stands_nowhere_may_need_every_file_that_there_ever_was() -> None:
    commits = [came(chess=["a"]), came(chess=["b"]), joined("chess", ["a", "b"], "ab"), came(go=["x"])]
    assert waiting(commits, {"go": 4}, ["chess", "go"]) == {"chess": UnreadRows(0, MADE, frozenset({"a", "b", "ab"}))}


def test_a_game_whose_commits_the_log_has_lost_waits_since_the_beginning() -> None:
    commits = [came(go=["x"])]
    assert waiting(commits, {"chess": 2, "go": 6}, ["chess", "go"], begins=5) == {"chess": UnreadRows(5, None)}
    assert UnreadBronze(waiting(commits, {"go": 6}, ["chess", "go"], begins=5)).oldest == datetime.fromtimestamp(
        0, timezone.utc
    )


def test_joined_files_wait_under_their_old_names_where_they_were_not_read() -> None:
    commits = [came(chess=["a"]), came(chess=["b"]), joined("chess", ["a", "b"], "ab")]
    assert waiting(commits, {"chess": 1}, ["chess"]) == {"chess": UnreadRows(1, MADE, frozenset("b"))}
    assert waiting(commits, {"chess": 2}, ["chess"]) == {}


def test_what_is_left_of_files_that_were_read_waits_for_nobody() -> None:
    commits = [came(chess=["a"]), deleted("chess", ["a"], "rest")]
    assert waiting(commits, {"chess": 1}, ["chess"]) == {}
    # some of it was not read: who goes on there has to look
    mixed = [came(chess=["a"]), came(chess=["b"]), deleted("chess", ["a", "b"], "rest")]
    assert waiting(mixed, {"chess": 1}, ["chess"]) == {"chess": UnreadRows(1, MADE, frozenset({"b", "rest"}))}


def test_names_and_times_are_read_as_they_are_written() -> None:
    hostile = "a/b c%2F将棋"
    commits = [Commit({hostile: ["part-0.parquet"]}, {}, is_dated=False)]
    assert waiting(commits, {hostile: 0}, [hostile]) == {hostile: UnreadRows(0, None, frozenset({"part-0.parquet"}))}


def test_together_they_wait_since_the_slowest_and_for_all_files() -> None:
    later = datetime(2026, 4, 1, tzinfo=timezone.utc)
    both = UnreadBronze({"a": UnreadRows(1, later, frozenset("xy")), "b": UnreadRows(0, MADE, frozenset("yz"))})
    assert (both.names, both.oldest) == (frozenset("xyz"), MADE)
    assert (UnreadBronze().names, UnreadBronze().oldest) == (frozenset(), None)


@given(st.lists(st.tuples(st.sampled_from(["chess", "go"]), st.booleans()), max_size=12), st.integers(0, 12))
def test_every_file_that_came_after_a_games_stand_waits_whatever_was_joined(
    batches: list[tuple[str, bool]], stand: int
) -> None:
    commits: list[Commit] = []
    live: dict[str, list[str]] = {"chess": [], "go": []}
    came_at: dict[str, int] = {}
    for game, is_joined in batches:
        name = f"f{len(commits)}"
        if is_joined and len(live[game]) > 1:
            commits.append(joined(game, live[game], name))
            live[game] = [name]
        else:
            came_at[name] = len(commits)
            commits.append(Commit({game: [name]}, {}))
            live[game].append(name)
    found = waiting(commits, {"chess": stand, "go": len(commits)}, ["chess", "go"])
    unread = {name for commit in commits for name in commit.added.get("chess", ()) if came_at.get(name, -1) >= stand}
    assert (found["chess"].names if found else frozenset()) == unread
    assert "go" not in found

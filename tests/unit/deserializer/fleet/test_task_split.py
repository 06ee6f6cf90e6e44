"""Which task reads which files: every file once, and no task much more than its share."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from demux.core.storage.files import Storage
from deserializer.decoders.schema_decision import UNDECIDED
from deserializer.fleet.replaced_rows import ReplacedRows
from deserializer.fleet.task_split import balance_parts, spread
from deserializer.fleet.worker import GameFiles

sizes = st.lists(st.integers(1, 1000), min_size=1, max_size=8)


def work(game: str, *sizes: int) -> GameFiles:
    paths = tuple(f"{game}/{number}" for number in range(len(sizes)))
    return GameFiles(Storage(), game, paths, sizes, f"silver/{game}", UNDECIDED, 7)


@given(st.dictionaries(st.sampled_from("abcdefgh"), sizes), st.integers(1, 5))
def test_every_file_is_read_once_and_no_task_has_much_more_than_its_share(
    games: dict[str, list[int]], tasks: int
) -> None:
    works = [work(game, *found) for game, found in games.items()]
    bytes_of = {path: size for each in works for path, size in zip(each.paths, each.sizes, strict=True)}
    done = spread(works, tasks)
    assert len(done) <= tasks
    assert all(done)
    read = [one for task in done for part in task for one in zip(part.paths, part.sizes, strict=True)]
    assert sorted(read) == sorted(bytes_of.items())
    loads = [sum(bytes_of[path] for part in task for path in part.paths) for task in done]
    share = sum(bytes_of.values()) / tasks
    # a file is never cut: what comes last to a task may be as large as a share and a file
    assert max(loads, default=0) <= 2 * share + max(bytes_of.values(), default=0)


def test_a_game_with_most_of_the_rows_is_worked_on_by_all_tasks() -> None:
    done = spread([work("hot", *[100] * 8), work("cold", 10)], 2)
    assert [sorted(part.game for part in task) for task in done] == [["cold", "hot"], ["hot"]]
    assert {len([path for part in task if part.game == "hot" for path in part.paths]) for task in done} == {4}


def test_a_game_whose_rows_replace_others_is_one_task() -> None:
    whole = replace(work("hot", *[100] * 8), replaces=ReplacedRows(None, {}, {}))
    assert [[part.game for part in task] for task in spread([whole, work("cold", 10)], 2)] == [["hot"], ["cold"]]


def test_a_game_is_cut_where_no_task_has_to_know_what_its_rows_replace() -> None:
    apart = replace(work("hot", *[100] * 8), replaces=ReplacedRows(None, {}, {}, may_lose=True))
    assert [[len(part.paths) for part in task] for task in spread([apart], 2)] == [[4], [4]]
    beside = replace(apart, replaces=ReplacedRows(None, {"a": 1}, {}, may_lose=True))
    assert [[len(part.paths) for part in task] for task in spread([beside], 2)] == [[8]]


def test_the_same_work_is_spread_the_same_way() -> None:
    works = [work("a", 5, 5), work("b", 7), work("c", 1)]
    assert spread(works, 2) == spread(reversed(works), 2)


def test_nothing_to_do_is_no_task() -> None:
    assert spread([], 3) == ()


def test_what_is_large_comes_first_to_the_task_that_has_least() -> None:
    assert balance_parts([(1, "a"), (5, "b"), (4, "c"), (2, "d")], 2) == (("b", "a"), ("c", "d"))
    assert balance_parts([(1, "a")], 4) == (("a",),)

"""Which cluster a game gets: room is kept, order is nothing, and nobody moves without need."""

from __future__ import annotations

from collections import Counter
from math import ceil
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from install_workflow.packing import pack

names = st.text(max_size=4)
games = st.sets(names, max_size=30)
clusters = st.sampled_from(["cluster_001", "cluster_002", "cluster_007", "its own"])
placements = st.dictionaries(names, clusters, max_size=30)
sizes = st.integers(1, 6)


def test_new_games_fill_one_cluster_after_the_other() -> None:
    assert pack(["c", "a", "b"], {}, 2) == {"a": "cluster_001", "b": "cluster_001", "c": "cluster_002"}


def test_a_new_game_goes_to_the_fullest_cluster_with_room() -> None:
    placed = {"a": "cluster_001", "b": "cluster_002", "c": "cluster_002"}
    assert pack(["a", "b", "c", "d"], placed, 3)["d"] == "cluster_002"


def test_the_games_too_many_leave_a_cluster_that_has_become_too_full() -> None:
    placed = dict.fromkeys("abc", "cluster_001")
    assert pack("abc", placed, 2) == {"a": "cluster_001", "b": "cluster_001", "c": "cluster_002"}


def test_a_cluster_whose_games_are_all_gone_is_not_used_by_name_only() -> None:
    assert pack(["new"], {"gone": "cluster_007"}, 2) == {"new": "cluster_001"}


@given(games, placements, sizes)
def test_every_game_has_a_cluster_and_no_cluster_has_too_many(
    games: set[str], placed: dict[str, str], per_cluster: int
) -> None:
    packed = pack(games, placed, per_cluster)
    assert packed.keys() == games
    assert max(Counter(packed.values()).values(), default=0) <= per_cluster


@given(games, placements, sizes, st.randoms(use_true_random=False))
def test_the_order_of_the_arguments_does_not_matter(
    games: set[str], placed: dict[str, str], per_cluster: int, random: Random
) -> None:
    shuffled, moved = sorted(games), sorted(placed.items())
    random.shuffle(shuffled)
    random.shuffle(moved)
    assert pack(shuffled, dict(moved), per_cluster) == pack(sorted(games), placed, per_cluster)


@given(games, placements, sizes, names)
def test_adding_a_game_moves_no_other(games: set[str], placed: dict[str, str], per_cluster: int, added: str) -> None:
    before = pack(games, placed, per_cluster)
    after = pack(games | {added}, before, per_cluster)
    assert {game: after[game] for game in games} == before


@given(games.filter(bool), placements, sizes, st.data())
def test_retiring_a_game_moves_no_other(
    games: set[str], placed: dict[str, str], per_cluster: int, data: st.DataObject
) -> None:
    retired = data.draw(st.sampled_from(sorted(games)))
    before = pack(games, placed, per_cluster)
    after = pack(games - {retired}, before, per_cluster)
    assert after == {game: cluster for game, cluster in before.items() if game != retired}


@given(games, placements, sizes)
def test_a_cluster_keeps_as_many_of_its_games_as_it_has_room_for(
    games: set[str], placed: dict[str, str], per_cluster: int
) -> None:
    packed = pack(games, placed, per_cluster)
    before = Counter(cluster for game, cluster in placed.items() if game in games)
    kept = Counter(cluster for game, cluster in packed.items() if placed.get(game) == cluster)
    assert all(kept[cluster] >= min(count, per_cluster) for cluster, count in before.items())


@given(games, sizes)
def test_a_first_packing_takes_as_few_clusters_as_can_be(games: set[str], per_cluster: int) -> None:
    assert len(set(pack(games, {}, per_cluster).values())) == ceil(len(games) / per_cluster)

"""Which cluster a game gets: room is kept, order is nothing, and nobody moves without need."""

from __future__ import annotations

from collections import Counter
from math import ceil
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from demux.core.errors import PlanRefused
from install_workflow.planning.rebalance import pack

names = st.text(max_size=4)
games = st.sets(names, max_size=30)
clusters = st.sampled_from(["cluster_001", "cluster_002", "cluster_007", "its own"])
placements = st.dictionaries(names, clusters, max_size=30)
sizes = st.integers(1, 6)
weighed = st.dictionaries(names, st.sampled_from([1, 7, 50, 999]) | st.integers(1, 10_000), max_size=30)


@st.composite
def tasks(draw: st.DrawFn) -> tuple[dict[str, int], dict[str, str], int, dict[str, str]]:
    """Weights of the games to place, where games run, room, and pins that leave room."""
    weights, placed, per_cluster = draw(weighed), draw(placements), draw(sizes)
    pinned = draw(st.dictionaries(st.sampled_from(sorted(weights) or ["none"]) | names, clusters, max_size=5))
    assume(max(Counter(pinned.values()).values(), default=0) <= per_cluster)
    return weights, placed, per_cluster, pinned


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


def test_heavy_games_are_spread_over_the_clusters() -> None:
    weights = {"a": 900, "b": 800, "c": 10, "d": 10}
    assert pack(weights, {}, 2, weights_ms=weights) == {
        "a": "cluster_001",
        "b": "cluster_002",
        "c": "cluster_002",
        "d": "cluster_001",
    }


def test_a_new_game_goes_to_the_lightest_cluster_with_room() -> None:
    placed = {"a": "cluster_001", "b": "cluster_002", "c": "cluster_002", "d": "cluster_003", "e": "cluster_003"}
    weights = {"a": 900, "b": 300, "c": 100, "d": 5, "e": 5, "new": 1}
    assert pack([*weights], placed, 2, weights_ms=weights)["new"] == "cluster_001"
    assert pack([*weights], placed, 3, weights_ms=weights)["new"] == "cluster_003"


def test_a_pinned_game_is_on_its_cluster_and_pushes_another_out_of_a_full_one() -> None:
    placed = {"a": "cluster_001", "b": "cluster_001", "c": "cluster_002"}
    assert pack("abc", placed, 2, {"c": "cluster_001", "other": "cluster_001"}) == {
        "a": "cluster_001",
        "b": "cluster_002",
        "c": "cluster_001",
    }
    assert pack("abc", placed, 3, {"b": "big"}) == placed | {"b": "big"}


def test_more_pinned_games_than_a_cluster_may_have_are_refused() -> None:
    pinned = {"a": "big", "b": "big", "c": "small", "gone": "small"}
    assert set(pack("abc", {}, 2, pinned).values()) == {"big", "small"}
    with pytest.raises(PlanRefused) as refused:
        pack("abc", {}, 1, pinned)
    assert refused.value.message == "games.pinned puts 2 games on big, and run.streams_per_cluster is 1."
    assert refused.value.remedy == "Pin some of them to another cluster, or raise run.streams_per_cluster."
    assert refused.value.fields == {"cluster": "big", "games": ("a", "b")}


@given(tasks())
def test_room_is_kept_and_pins_obeyed_whatever_the_weights(
    task: tuple[dict[str, int], dict[str, str], int, dict[str, str]],
) -> None:
    weights, placed, per_cluster, pinned = task
    for known in ({}, weights):
        packed = pack(weights, placed, per_cluster, pinned, known)
        assert packed.keys() == weights.keys()
        assert max(Counter(packed.values()).values(), default=0) <= per_cluster
        assert {game: packed[game] for game in pinned.keys() & packed.keys()}.items() <= pinned.items()


@given(tasks(), st.randoms(use_true_random=False))
def test_the_order_of_weights_and_pins_does_not_matter(
    task: tuple[dict[str, int], dict[str, str], int, dict[str, str]], random: Random
) -> None:
    weights, placed, per_cluster, pinned = task
    shuffled = [sorted(each.items()) for each in (weights, placed, pinned)]
    for each in shuffled:
        random.shuffle(each)
    mixed, moved, pins = (dict(each) for each in shuffled)
    packed = pack(weights, placed, per_cluster, pinned, weights)
    assert pack(mixed, moved, per_cluster, pins, mixed) == packed  # type: ignore[arg-type]


@given(tasks())
def test_packing_again_moves_nobody(task: tuple[dict[str, int], dict[str, str], int, dict[str, str]]) -> None:
    weights, placed, per_cluster, pinned = task
    packed = pack(weights, placed, per_cluster, pinned, weights)
    assert pack(weights, packed, per_cluster, pinned, weights) == packed
    assert pack(weights, packed, per_cluster, pinned) == packed


@given(tasks(), names, st.data())
def test_adding_one_game_and_retiring_another_moves_no_third(
    task: tuple[dict[str, int], dict[str, str], int, dict[str, str]], added: str, data: st.DataObject
) -> None:
    weights, placed, per_cluster, pinned = task
    assume(weights and added not in weights and added not in pinned)
    retired = data.draw(st.sampled_from(sorted(weights)))
    before = pack(weights, placed, per_cluster, pinned, weights)
    games = weights.keys() - {retired} | {added}
    after = pack(games, before, per_cluster, pinned, weights | {added: data.draw(st.integers(1, 10_000))})
    assert {game: after[game] for game in games - {added}} == {game: before[game] for game in games - {added}}


@given(tasks(), names)
def test_a_new_pin_moves_its_game_and_at_most_one_other(
    task: tuple[dict[str, int], dict[str, str], int, dict[str, str]], cluster: str
) -> None:
    weights, placed, per_cluster, pinned = task
    assume(weights and list(pinned.values()).count(cluster) < per_cluster)
    before = pack(weights, placed, per_cluster, pinned, weights)
    pins = pinned | {min(weights): cluster}
    assume(max(Counter(pins.values()).values()) <= per_cluster)
    after = pack(weights, before, per_cluster, pins, weights)
    moved = {game for game in weights if before[game] != after[game]}
    assert len(moved - {min(weights)}) <= 1


@given(weighed, sizes)
def test_the_heaviest_cluster_of_a_first_packing_is_no_heavier_than_the_lightest_and_one_game(
    weights: dict[str, int], per_cluster: int
) -> None:
    packed = pack(weights, {}, per_cluster, weights_ms=weights)
    carried = Counter[str]()
    heaviest: dict[str, int] = {}
    for game, cluster in packed.items():
        carried[cluster] += weights[game]
        heaviest[cluster] = max(heaviest.get(cluster, 0), weights[game])
    assert len(carried) == ceil(len(weights) / per_cluster)
    lightest = min(carried.values(), default=0)
    assert all(carried[cluster] - heaviest[cluster] <= lightest for cluster in carried)

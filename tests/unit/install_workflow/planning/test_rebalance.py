"""Games leave an overloaded cluster: few at a time, and only when it pays."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from install_workflow.planning.rebalance import GameMove, balance, most_moves, pack

ONE, TWO, THREE = "cluster_001", "cluster_002", "cluster_003"

weights_of_games = st.dictionaries(
    st.text(max_size=4), st.sampled_from([1, 50, 4000, 90_000]) | st.integers(1, 5000), min_size=1, max_size=40
)


@st.composite
def packings(draw: st.DrawFn) -> tuple[dict[str, int], dict[str, str], int]:
    """Weights, a cluster for each game, and room for them."""
    weights = draw(weights_of_games)
    cluster = st.integers(1, draw(st.integers(1, 7))).map("cluster_{:03d}".format)
    packed = {game: draw(cluster) for game in weights}
    fullest = max(Counter(packed.values()).values())
    return weights, packed, fullest + draw(st.integers(0, 12))


def carried(packed: dict[str, str], weights: dict[str, int]) -> Counter[str]:
    result = Counter[str]()
    for game, cluster in packed.items():
        result[cluster] += weights[game]
    return result


def overloaded(packed: dict[str, str], weights: dict[str, int]) -> set[str]:
    loads = carried(packed, weights)
    mean = sum(loads.values()) / len(loads)
    limit = max(1.5 * mean, mean + max(weights.values()))
    return {cluster for cluster, load in loads.items() if load > limit * (1 + 1e-9)}


def after(packed: dict[str, str], moves: dict[str, GameMove]) -> dict[str, str]:
    return packed | {game: move.cluster for game, move in moves.items()}


def test_an_overloaded_cluster_gives_its_heaviest_game_to_the_lightest() -> None:
    packed = {"a": ONE, "b": ONE, "c": ONE, "d": ONE, "e": TWO, "f": THREE}
    weights = {"a": 3000, "b": 2900, "c": 2800, "d": 2700, "e": 500, "f": 400}
    reason = "moved from cluster_001, which carries 11.4 seconds a round"
    moves = balance(packed, packed, weights, 4)
    assert moves["a"] == GameMove(THREE, reason)
    assert moves["b"] == GameMove(TWO, "moved from cluster_001, which carries 8.4 seconds a round")
    assert moves.keys() == {"a", "b"}


def test_a_full_cluster_gives_a_light_game_back() -> None:
    packed = {"a": ONE, "b": ONE, "c": ONE, "d": TWO, "e": TWO, "f": TWO}
    weights = {"a": 3000, "b": 3000, "c": 3000, "d": 100, "e": 200, "f": 300}
    assert balance(packed, packed, weights, 3) == {
        "c": GameMove(TWO, "moved from cluster_001, which carries 9.0 seconds a round"),
        "d": GameMove(ONE, "moved from cluster_002, which takes a heavier game"),
    }


def test_a_cluster_that_is_heavy_by_one_game_keeps_it() -> None:
    packed = {"giant": ONE, "a": ONE, "b": TWO, "c": TWO}
    assert balance(packed, packed, {"giant": 99_000, "a": 100, "b": 100, "c": 100}, 20) == {}


def test_a_cluster_that_is_a_little_heavier_keeps_its_games() -> None:
    packed = {f"game {number}": ONE if number < 12 else TWO for number in range(20)}
    assert balance(packed, packed, dict.fromkeys(packed, 100), 20) == {}


def test_games_that_may_not_move_stay() -> None:
    packed = dict.fromkeys("abcd", ONE) | {"e": TWO, "f": THREE}
    weights = {"a": 3000, "b": 2900, "c": 2800, "d": 2700, "e": 500, "f": 400}
    assert balance(packed, {"d", "e", "f"}, weights, 4).keys() == {"d"}
    assert balance(packed, {"e", "f"}, weights, 4) == {}


def test_a_full_cluster_that_has_no_light_game_to_give_back_takes_none() -> None:
    packed = {"a": ONE, "b": ONE, "c": ONE, "d": TWO, "e": TWO, "f": TWO, "g": TWO}
    weights = {"a": 4000, "b": 4000, "c": 4000, "d": 50, "e": 50, "f": 100, "g": 2900}
    assert balance(packed, {"a", "b", "c", "d"}, weights, 4).keys() == {"c", "d"}
    assert balance(packed, {"a", "b", "c", "g"}, weights, 4) == {}
    assert balance(packed, {"a", "b", "c"}, weights, 4) == {}


def test_nothing_moves_where_nothing_is_known() -> None:
    assert balance({"a": ONE}, {"a"}, {}, 20) == {}
    assert balance({}, (), {"a": 1}, 20) == {}


def test_one_game_in_twenty_may_move_and_an_exchange_always() -> None:
    assert [most_moves(games) for games in (0, 1, 40, 59, 60, 2000)] == [2, 2, 2, 2, 3, 100]


def test_half_an_exchange_is_not_made() -> None:
    packed = {f"game {number:02}": (ONE, TWO, THREE)[number // 20] for number in range(60)}
    weights = {game: 5000 if cluster == ONE else 10 for game, cluster in packed.items()}
    assert most_moves(60) == 3
    assert balance(packed, packed, weights, 20).keys() == {"game 19", "game 20"}


@given(packings())
def test_no_plan_moves_more_than_its_bound_or_overfills_or_overloads_a_cluster(
    packing: tuple[dict[str, int], dict[str, str], int],
) -> None:
    weights, packed, per_cluster = packing
    moves = balance(packed, packed, weights, per_cluster)
    packed_after = after(packed, moves)
    assert len(moves) <= most_moves(len(packed))
    assert all(packed[game] != move.cluster for game, move in moves.items())
    assert max(Counter(packed_after.values()).values()) <= per_cluster
    assert overloaded(packed_after, weights) <= overloaded(packed, weights)
    assert bool(moves) == bool(overloaded(packed, weights))


@given(packings())
def test_plan_after_plan_ends_with_no_cluster_overloaded(
    packing: tuple[dict[str, int], dict[str, str], int],
) -> None:
    weights, packed, per_cluster = packing
    # each step takes at least half the mean of a place from the overloaded clusters
    for _ in range(2 * per_cluster * len(set(packed.values())) + 1):
        moves = balance(packed, packed, weights, per_cluster)
        packed = after(packed, moves)
        if not moves:
            break
    assert moves == {}
    assert overloaded(packed, weights) == set()


@given(packings(), st.data())
def test_only_games_that_may_move_do(packing: tuple[dict[str, int], dict[str, str], int], data: st.DataObject) -> None:
    weights, packed, per_cluster = packing
    movable = data.draw(st.sets(st.sampled_from(sorted(packed))))
    moves = balance(packed, movable, weights, per_cluster)
    packed_after = after(packed, moves)
    assert moves.keys() <= movable
    assert all(packed[game] != move.cluster for game, move in moves.items())
    assert max(Counter(packed_after.values()).values()) <= per_cluster
    assert overloaded(packed_after, weights) <= overloaded(packed, weights)


@given(packings(), st.randoms(use_true_random=False))
def test_the_order_of_the_arguments_does_not_matter(
    packing: tuple[dict[str, int], dict[str, str], int], random: Random
) -> None:
    weights, packed, per_cluster = packing
    shuffled, mixed = sorted(packed.items()), sorted(weights.items())
    random.shuffle(shuffled)
    random.shuffle(mixed)
    one = balance(packed, packed, weights, per_cluster)
    other = balance(dict(shuffled), packed, dict(mixed), per_cluster)
    assert list(one.items()) == list(other.items())


@given(weights_of_games, st.integers(1, 8))
def test_a_packing_from_scratch_has_no_cluster_overloaded(weights: dict[str, int], per_cluster: int) -> None:
    packed = pack(weights, {}, per_cluster, weights_ms=weights)
    assert balance(packed, packed, weights, per_cluster) == {}

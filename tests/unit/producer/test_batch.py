from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from producer.batch import BatchRecipe, batch
from producer.events import EventWriter, random_words
from producer.faults import Fault

NOW_US = 1_767_323_045_000_000


@pytest.fixture(scope="module")
def recipe(writer: Callable[[int, int], EventWriter]) -> BatchRecipe:
    writers = [[writer(number, version) for version in (1, 2, 3)] for number in (0, 1)]
    return BatchRecipe(3, writers, 0.2, tuple(Fault), 4, 0, NOW_US)


@given(first=st.integers(0, 2**40), count=st.integers(0, 50), more=st.integers(0, 50), seed=st.integers(0, 2**64))
def test_the_random_words_of_an_event_depend_on_its_number_only(first: int, count: int, more: int, seed: int) -> None:
    whole = random_words(seed, first, count + more)
    parts = [random_words(seed, first, count), random_words(seed, first + count, more)]
    assert np.array_equal(whole, np.concatenate(parts))


def test_an_event_is_the_same_bytes_in_whatever_batch_it_is_made(recipe: BatchRecipe) -> None:
    whole, counts = batch(recipe, 0, 500)
    parts = [batch(recipe, first, count) for first, count in ((0, 123), (123, 1), (124, 376))]
    assert whole.values == [value for records, _ in parts for value in records.values]
    assert whole.keys == [key for records, _ in parts for key in records.keys]
    assert whole.timestamps_us.tolist() == [NOW_US + number for number in range(500)]
    assert np.array_equal(whole.timestamps_us, np.concatenate([records.timestamps_us for records, _ in parts]))
    assert counts == parts[0][1] + parts[1][1] + parts[2][1]


def test_another_seed_gives_other_events(recipe: BatchRecipe) -> None:
    assert batch(recipe, 0, 50)[0].values != batch(replace(recipe, seed=4), 0, 50)[0].values


def test_every_event_is_a_wrapper_of_its_game_and_version(recipe: BatchRecipe, wrapper_class: type[Message]) -> None:
    records, counts = batch(replace(recipe, fault_rate=0.0), 0, 600)
    classes = {writer.schema_id: writer for versions in recipe.writers for writer in versions}
    seen: Counter[int] = Counter()
    for value, key in zip(records.values, records.keys, strict=True):
        wrapper: Any = wrapper_class.FromString(value or b"")
        writer = classes[wrapper.schema_id]
        event: Any = writer.message.FromString(wrapper.payload)
        assert wrapper.game_name == event.game_name == writer.game.name == key.decode()
        assert NOW_US - 3_600_000_000 < event.event_timestamp.ToMicroseconds() <= NOW_US
        assert event.user_name.startswith("user_")
        seen[wrapper.schema_id] += 1
    assert sorted(seen) == [1, 2, 3, 11, 12, 13]
    assert min(seen.values()) > 60
    assert counts == {("chess", None): seen[1] + seen[2] + seen[3], ("go", None): seen[11] + seen[12] + seen[13]}


def test_an_event_in_full(recipe: BatchRecipe, wrapper_class: type[Message]) -> None:
    records, _ = batch(replace(recipe, writers=[recipe.writers[0][2:]], fault_rate=0.0), 4, 1)
    wrapper: Any = wrapper_class.FromString(records.values[0] or b"")
    event = recipe.writers[0][2].message.FromString(wrapper.payload)
    assert MessageToDict(event) == {
        "gameName": "chess",
        "userName": "user_4960",
        "eventTimestamp": "2026-01-02T02:38:55.192981Z",
        "isConnectionStable": True,
        "outcome": "OUTCOME_DRAWN",
        "tags": ["a", "b", "c"],
        "scores": {"total": "1099511627776"},
        "colChessGame1": "-7574640287320494378",
        "colChessGame2": 5610.106334606888,
    }


def test_columns_take_all_kinds_of_values(recipe: BatchRecipe, wrapper_class: type[Message]) -> None:
    records, _ = batch(replace(recipe, writers=[recipe.writers[0][2:]], fault_rate=0.0), 0, 400)
    message = recipe.writers[0][2].message
    events: list[Any] = [message.FromString(wrapper_class.FromString(v or b"").payload) for v in records.values]  # type: ignore[attr-defined]
    assert {event.outcome for event in events} == {0, 1, 2, 3}
    assert {event.is_connection_stable for event in events} == {True, False}
    assert {event.HasField("device") for event in events} == {True, False}
    assert {len(event.tags) for event in events} == {0, 1, 2, 3}
    assert {len(event.scores) for event in events} == {0, 1, 2, 3}
    assert min(event.col_chess_game_1 for event in events) < -(2**62)
    assert max(event.col_chess_game_1 for event in events) > 2**62


def test_the_rate_is_kept_and_the_kinds_are_equally_often(recipe: BatchRecipe) -> None:
    _, counts = batch(recipe, 0, 20_000)
    by_fault: Counter[Fault | None] = Counter()
    for (_, fault), count in counts.items():
        by_fault[fault] += count
    assert by_fault.total() == 20_000
    assert abs(20_000 - by_fault[None] - 4_000) < 200
    assert all(200 < by_fault[fault] < 375 for fault in Fault)


def test_the_kinds_of_fault_can_be_chosen(recipe: BatchRecipe) -> None:
    only = replace(recipe, fault_rate=1.0, faults=(Fault.NULL_VALUE,))
    assert batch(only, 0, 20)[0].values == [None] * 20
    assert None not in batch(replace(recipe, fault_rate=1.0, faults=()), 0, 20)[0].values


def test_a_game_keeps_to_its_partition(recipe: BatchRecipe) -> None:
    records, _ = batch(recipe, 0, 100)
    pairs = set(zip(records.keys, records.partitions.tolist(), strict=True))
    assert pairs == {(b"chess", 0), (b"go", 1)}

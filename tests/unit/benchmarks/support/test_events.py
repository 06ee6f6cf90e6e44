from __future__ import annotations

from collections import Counter
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import Message

from benchmarks.support.events import Events, Kept, made_events
from demux.core.protobuf.envelope import envelope_of
from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of
from demux.core.settings.source import WrapperSettings


def fields_of(message: Message) -> dict[str, object]:
    return {field.name: value for field, value in message.ListFields()}


def names_in(events: Events) -> Counter[str]:
    compiled = envelope_of(WrapperSettings())
    wrapper = message_class(pool_of(FileDescriptorSet.FromString(compiled.descriptor_set)), compiled.message)
    values = [value for batch in events.batches for value in batch.values]
    return Counter(str(fields_of(wrapper.FromString(value))["game_name"]) for value in values if value is not None)


def test_events_of_the_first_games_are_those_of_all_games_without_the_others(tmp_path: Path) -> None:
    events = made_events(tmp_path, games=3, rows_each=20, versions=2)
    assert events.rows == 60
    named = names_in(events)
    assert sorted(named) == ["backgammon", "chess", "go"]
    first = events.of_first(1)
    assert names_in(first) == {"chess": named["chess"]}
    assert [len(batch.keys) for batch in first.batches] == [named["chess"]]


def test_events_sent_twice_are_the_same_bytes(tmp_path: Path) -> None:
    events, kept = made_events(tmp_path, games=2, rows_each=5, versions=1), Kept()
    events.send(kept)
    events.send(kept)
    assert kept.batches == [*events.batches, *events.batches]

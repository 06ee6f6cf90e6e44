"""`demux demo --kafka` as a person calls it, and what `demux produce --clean-up` leaves behind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from demux.core.root.layout import Layout
from demux.core.settings.loading.loader import load
from producer.kafka.sink import MARKS
from tests.support.flow.process import Command, Said
from tests.support.flow.root import rows
from tests.support.kafka.produced import topics
from tests.support.kafka.records import make_topic
from tools.servers.broker import Broker
from tools.servers.registry import Registry

EVENTS = 1500
DEMO = ("demo", "--events", str(EVENTS), "--games", "2")
NEIGHBOUR = Schema('syntax = "proto3"; message Neighbour {}', "PROTOBUF")


def table(said: Said) -> list[list[str]]:
    """The words of the table in the order of its lines, without a game's seconds and the ages of its rows."""
    lines = [re.sub(r"  [^ ]+ [a-z]+, [^ ]+ [a-z]+ *$", "", line).split() for line in said.out.splitlines()]
    (first,) = (at for at, words in enumerate(lines) if words[:2] == ["game", "state"])
    (behind,) = (at for at, words in enumerate(lines) if words[1:3] == ["s;", "Spark's"])
    return [[word for word in words if not re.fullmatch(r"\d+\.\d", word)] for words in lines[first:behind]]


def places(root: Path) -> list[str]:
    """The record ids of all that is in a game's table or in quarantine."""
    layout = Layout(str(root))
    silver = [row["_record_id"] for game in (root / "silver").iterdir() for row in rows(game)]
    return sorted([*silver, *(row["record_id"] for row in rows(layout.quarantine))])


@pytest.fixture(scope="module")
def kafka(broker: Broker, registry: Registry) -> Sequence[str]:
    """The options that lead to the servers."""
    return (
        "--kafka",
        "--set",
        f"kafka.bootstrap_servers={broker.bootstrap}",
        "--set",
        'kafka.topics=["demo-events"]',
        "--set",
        f"registry.url={registry.url}",
    )


def test_the_demonstration_over_kafka_prints_what_the_embedded_one_does_continues_and_is_cleaned_up(
    broker: Broker, registry: Registry, kafka: Sequence[str], tmp_path: Path, command: Command
) -> None:
    root = tmp_path / "kafka"
    over_kafka = (*DEMO, "--root", str(root), *kafka)
    with SchemaRegistryClient({"url": registry.url}) as client:
        client.register_schema("demo-neighbour", NEIGHBOUR)
        make_topic(broker.bootstrap, "demo-neighbour")
        subjects, before = set(client.get_subjects()), topics(broker.bootstrap)

        embedded, first = command(*DEMO, "--root", str(tmp_path / "embedded")), command(*over_kafka)
        assert (embedded.code, first.code) == (0, 0), embedded.err + first.err
        assert table(first) == table(embedded)
        assert {"chess", "go", "2"} <= {words[0] for words in table(first) if words}
        assert len(places(root)) == EVENTS

        second = command(*over_kafka)
        assert second.code == 0, second.err
        found = places(root)
        assert len(found) == len(set(found)) == 2 * EVENTS
        assert {name.rpartition("/")[0] for name in found} == {f"demo-events/{partition}" for partition in range(2)}

        assert topics(broker.bootstrap) == before | {"demo-events", MARKS}
        assert set(client.get_subjects()) > subjects
        # the demonstration wrote the settings for the commands that follow
        settings = root / "demo.yml"
        assert load(settings, {}, {}).kafka.topics == ("demo-events",)
        clean = ("produce", "--clean-up", "-c", str(settings))
        said = command(*clean)
        assert said.out.startswith(f"removed: topic demo-events at {broker.bootstrap}; 6 schemas\n"), said.err
        again = command(*clean, "--set", 'kafka.topics=["demo-neighbour"]')
        assert again.out == (
            f"removed: nothing, as the producer did not make topic demo-neighbour at {broker.bootstrap}; 0 schemas\n"
        )
        assert topics(broker.bootstrap) == before
        client.clear_caches()
        assert set(client.get_subjects()) == subjects
    assert places(root) == found

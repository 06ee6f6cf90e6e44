"""Clients of a cluster, where no broker answers."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import suppress

import pytest

from demux.core.errors import KafkaUnavailable
from demux.core.kafka.cluster import KafkaCluster
from demux.core.settings.source import KafkaSettings
from tools.servers.ports import free_ports


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
def test_clients_end_with_the_last_reference_to_them_and_wait_for_no_garbage_collection() -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    cluster = KafkaCluster(KafkaSettings(bootstrap_servers=address, topics=("t",), connect_timeout_s=1), {})
    producer = cluster.producer()
    with suppress(KafkaUnavailable):
        cluster.topic("t")
    ended = weakref.ref(cluster)
    del cluster, producer
    assert ended() is None

"""A registry over HTTP that can be told to fail, and connections to it that never really wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest

from demux.core.registry.confluent.http_client import Rest
from demux.core.registry.confluent.registry import ConfluentRegistry
from demux.core.settings.settings import RegistrySettings
from tests.fakes.registry_server import FakeRegistry, serving


@pytest.fixture
def fake() -> Iterator[FakeRegistry]:
    with serving(FakeRegistry()) as registry:
        yield registry


@pytest.fixture
def waits() -> list[float]:
    """Every wait between two tries; none takes any time."""
    return []


@pytest.fixture
def connect(fake: FakeRegistry, waits: list[float]) -> Callable[..., ConfluentRegistry]:
    def connected(
        made_by: str | None = None, environ: Mapping[str, str] | None = None, **more: object
    ) -> ConfluentRegistry:
        settings = RegistrySettings.model_validate({"url": fake.url, "timeout_s": 5, **more})
        return ConfluentRegistry(Rest(settings, environ or {}, waits.append), made_by)

    return connected

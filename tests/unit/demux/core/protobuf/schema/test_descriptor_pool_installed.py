"""Messages of installed packages that nobody here wrote: each is decoded and compared with the oracle."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from demux.core.protobuf.decode.decoder import decoder_of
from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of
from tests.support.data.messages import payloads
from tests.support.oracle import arrow_rows, difference, oracle_row

PACKAGES = ("google.api", "google.rpc", "google.type", "google.longrunning", "google.cloud", "google.transit")
DEEP_PACKAGES = ("opentelemetry.proto",)


def modules() -> Iterator[ModuleType]:
    for name in (*PACKAGES, *DEEP_PACKAGES):
        package = importlib.import_module(name)
        walk = pkgutil.walk_packages if name in DEEP_PACKAGES else pkgutil.iter_modules
        for module in walk(package.__path__, f"{name}."):
            # one imports grpc, and has no messages of its own
            if module.name.endswith("_pb2") and not module.name.endswith("_grpc_pb2"):
                yield importlib.import_module(module.name)


@cache
def descriptor_set(file: Any) -> bytes:
    """The file and its imports, imports first."""
    found: dict[str, FileDescriptorProto] = {}

    def add(one: Any) -> None:
        for imported in one.dependencies:
            add(imported)
        found.setdefault(one.name, FileDescriptorProto.FromString(one.serialized_pb))

    add(file)
    return FileDescriptorSet(file=found.values()).SerializeToString()


def messages_of(descriptor: Any) -> Iterator[str]:
    if not descriptor.GetOptions().map_entry:
        yield descriptor.full_name
    for nested in descriptor.nested_types:
        yield from messages_of(nested)


FILES = {module.DESCRIPTOR.name: module.DESCRIPTOR for module in modules()}


def test_there_are_schemas_of_every_package() -> None:
    names = " ".join(FILES)
    assert all(
        name in names for name in ("google/api/", "google/rpc/", "google/type/", "gtfs-realtime", "opentelemetry/")
    )
    assert (
        sum(1 for file in FILES.values() for one in file.message_types_by_name.values() for _ in messages_of(one)) > 150
    )


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_every_message_of_a_file_is_decoded_as_the_oracle_says(file: Any) -> None:
    pool = pool_of(FileDescriptorSet.FromString(descriptor_set(file)))
    names = [name for one in file.message_types_by_name.values() for name in messages_of(one)]
    for name in names:
        cls: Any = message_class(pool, name)
        made = payloads(cls, seed=31, count=6)
        by = decoder_of(descriptor_set(file), name)
        decoded = by.decode(made)
        assert (decoded.bad, sorted(decoded.good)) == ((), list(range(6)))
        columns = [column.name for column in by.columns]
        rows = arrow_rows(decoded.columns, columns) if columns else [{}] * 6
        for position, row in zip(decoded.good, rows, strict=True):
            expected = oracle_row(cls.FromString(made[position]), cls.DESCRIPTOR)
            assert difference(expected, row, name) is None

"""Schemas that nobody here wrote, as games: random messages through the whole spine, every row compared.

Google's common protos bring their `.proto` texts; of OpenTelemetry and GTFS Realtime (proto2, with required fields and
room for extensions) the packages have compiled files only, which are written as text again.
"""

from __future__ import annotations

import importlib.resources
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import SparkSession

from demux.protobuf.compile import compile_schema
from demux.registry.protocol import Reference
from demux.tables import SILVER_RESERVED
from tests.flow.root import Root, wrapper
from tests.messages import payloads
from tests.oracle import arrow_rows, difference, oracle_row
from tests.proto_text import comparable, proto_text

# a game is called like its message; the module is where an installed package has it
GAMES = {
    "google.rpc.context.AttributeContext": "google.rpc.context.attribute_context_pb2",
    "google.api.Service": "google.api.service_pb2",
    "opentelemetry.proto.trace.v1.TracesData": "opentelemetry.proto.trace.v1.trace_pb2",
    "opentelemetry.proto.metrics.v1.MetricsData": "opentelemetry.proto.metrics.v1.metrics_pb2",
    "transit_realtime.FeedMessage": "google.transit.gtfs_realtime_pb2",
}
MESSAGES = 30


@dataclass(frozen=True, slots=True)
class Sent:
    root: Root
    ids: dict[str, int]
    payloads: dict[str, list[bytes]]


def file_of(game: str) -> FileDescriptor:
    module: Any = importlib.import_module(GAMES[game])
    file: FileDescriptor = module.DESCRIPTOR
    return file


def files_of(file: FileDescriptor) -> dict[str, FileDescriptor]:
    """The file and all that it needs, but for those that protoc itself brings."""
    found = {file.name: file}
    for needed in file.dependencies:
        if not needed.name.startswith("google/protobuf/"):
            found |= files_of(needed)
    return found


def text_of(file: FileDescriptor) -> str:
    folder, _, name = file.name.rpartition("/")
    if file.package.startswith("google."):
        return (importlib.resources.files(folder.replace("/", ".")) / name).read_text("utf-8")
    return proto_text(FileDescriptorProto.FromString(file.serialized_pb))


@pytest.fixture(scope="module")
def sent(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Sent:
    root = Root.at(spark, tmp_path_factory.mktemp("foreign") / "root")
    ids, made, records = {}, {}, []
    for game in GAMES:
        main, *others = files_of(file_of(game)).values()
        references = tuple(Reference(file.name, text_of(file)) for file in others)
        ids[game] = root.registry.register(game, text_of(main), main.name, references, game)
        made[game] = payloads(root.message(ids[game]), seed=7, count=MESSAGES, density=0.5)
        records += [wrapper(game, ids[game], payload) for payload in made[game]]
    root.send(records)
    result = root.run()
    assert [end.error for end in result.ended] == [None] * len(GAMES)
    return Sent(root, ids, made)


@pytest.mark.parametrize("game", GAMES)
def test_the_registered_schema_is_the_one_of_the_installed_package(sent: Sent, game: str) -> None:
    compiled = compile_schema(sent.root.registry.schema(sent.ids[game]))
    by_name = {file.name: file for file in FileDescriptorSet.FromString(compiled.descriptor_set).file}
    for name, file in files_of(file_of(game)).items():
        installed = FileDescriptorProto.FromString(file.serialized_pb)
        assert comparable(by_name[name]) == comparable(installed)


@pytest.mark.parametrize("game", GAMES)
def test_every_row_of_a_foreign_schema_is_what_google_protobuf_reads(sent: Sent, game: str) -> None:
    table: pa.Table = DeltaTable(sent.root.silver_path(game)).to_pyarrow_table()
    names = [name for name in table.column_names if name not in SILVER_RESERVED]
    rows = dict(zip(table["_offset"].to_pylist(), arrow_rows(table.select(names).columns, names), strict=True))
    first = list(GAMES).index(game) * MESSAGES
    assert sorted(rows) == list(range(first, first + MESSAGES))
    # read by the class of the installed package, not by the one that the registry's text gives
    descriptor: Any = descriptor_pool.Default().FindMessageTypeByName(game)
    message = GetMessageClass(descriptor)
    for offset, payload in enumerate(sent.payloads[game], start=first):
        expected = oracle_row(message.FromString(payload), descriptor, SILVER_RESERVED)
        assert difference(expected, rows[offset], game) is None


def test_no_foreign_message_is_set_aside(sent: Sent) -> None:
    assert sent.root.quarantine() == []

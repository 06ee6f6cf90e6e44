"""Message types of installed packages, which nobody here wrote. Free of Spark.

The packages bring generated modules. A module is read, not imported: some are generated for an older `protobuf`, or
their package imports much more.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from functools import cache
from pathlib import Path, PurePosixPath

from google.protobuf.descriptor_pb2 import FileDescriptorProto

# full name of the message: the module that holds its file
TYPES = {
    "NanoPBOptions": "nanopb/generator/proto/nanopb_pb2.py",
    "SC2APIProtocol.Action": "s2clientprotocol/sc2api_pb2.py",
    "SC2APIProtocol.RequestCreateGame": "s2clientprotocol/sc2api_pb2.py",
    "SC2APIProtocol.Response": "s2clientprotocol/sc2api_pb2.py",
    "google.api.Distribution": "google/api/distribution_pb2.py",
    "google.api.Service": "google/api/service_pb2.py",
    "google.gapic.metadata.GapicMetadata": "google/gapic/metadata/gapic_metadata_pb2.py",
    "google.logging.type.HttpRequest": "google/logging/type/http_request_pb2.py",
    "google.longrunning.Operation": "google/longrunning/operations_proto_pb2.py",
    "google.protobuf.FileDescriptorProto": "google/protobuf/descriptor_pb2.py",
    "google.rpc.Status": "google/rpc/status_pb2.py",
    "google.rpc.context.AttributeContext": "google/rpc/context/attribute_context_pb2.py",
    "grpc.channelz.v1.Channel": "grpc_channelz/v1/channelz_pb2.py",
    "grpc.channelz.v1.Socket": "grpc_channelz/v1/channelz_pb2.py",
    "onnx.ModelProto": "onnx/onnx_ml_pb2.py",
    "onnx.TensorProto": "onnx/onnx_ml_pb2.py",
    "opentelemetry.proto.logs.v1.LogsData": "opentelemetry/proto/logs/v1/logs_pb2.py",
    "opentelemetry.proto.metrics.v1.MetricsData": "opentelemetry/proto/metrics/v1/metrics_pb2.py",
    "opentelemetry.proto.trace.v1.TracesData": "opentelemetry/proto/trace/v1/trace_pb2.py",
    "perfetto.protos.TraceConfig": "perfetto/protos/perfetto/trace/perfetto_trace_pb2.py",
    "transit_realtime.FeedMessage": "google/transit/gtfs_realtime_pb2.py",
}

_LITERAL = re.compile(rb"""(?:AddSerializedFile|serialized_pb=_b)\(\s*(b?(['"]).*\2)\s*\)""")

Files = tuple[FileDescriptorProto, ...]


@cache
def files_of(message: str) -> Files:
    """The file of a message type, and all that it needs; each comes after its imports, so its own file is the last."""
    found: dict[str, FileDescriptorProto] = {}

    def add(file: FileDescriptorProto) -> None:
        for name in file.dependency:
            if name not in found:
                add(_file(module_of(name)))
        found[file.name] = file

    add(_file(TYPES[message]))
    return tuple(found.values())


def module_of(file: str) -> str:
    """Where a package has the module of an imported file."""
    return f"{file.removesuffix('.proto')}_pb2.py"


def installed_text(module: str) -> str | None:
    """The `.proto` text that a package brings beside the module, if it does."""
    path = _path(module)
    text = path.with_name(PurePosixPath(_file(module).name).name)
    return text.read_text("utf-8") if text.is_file() else None


@cache
def _file(module: str) -> FileDescriptorProto:
    literal = _LITERAL.search(_path(module).read_bytes())
    assert literal is not None, f"{module} holds no file"
    data: bytes | str = ast.literal_eval(literal[1].decode())
    # before Python 3, a generated module had its bytes as text
    return FileDescriptorProto.FromString(data.encode("latin-1") if isinstance(data, str) else data)


def _path(module: str) -> Path:
    package, _, inside = module.partition("/")
    spec = importlib.util.find_spec(package)
    assert spec is not None, f"{package} is not installed"
    folders = (Path(folder) for folder in spec.submodule_search_locations or ())
    return next(path for folder in folders if (path := folder / inside).is_file())

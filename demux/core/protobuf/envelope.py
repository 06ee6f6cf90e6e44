"""The envelope around every payload: ours, or the one that the settings name, compiled and checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet

from demux.core.columns.types import ColumnType, Primitive, Struct
from demux.core.errors import SchemaInvalid, SettingsInvalid
from demux.core.protobuf.decode.reference_parser import enum_text
from demux.core.protobuf.schema.column_mapping import (
    Cardinality,
    Enumeration,
    FieldMapping,
    Message,
    NullableScalar,
    Scalar,
    Value,
    column_type,
    columns_of,
    shape_of,
)
from demux.core.protobuf.schema.descriptor_pool import pool_of
from demux.core.protobuf.schema.protoc import CompiledSchema, compile_schema
from demux.core.registry.imports import path_mistake, transitive_imports
from demux.core.registry.protocol import RegisteredSchema
from demux.core.settings.source import WrapperSettings

# beside the package in the wheel, in proto/ in a checkout
_PLACES = (
    Path(__file__).parents[2] / "wrapper.proto",
    Path(__file__).parents[3] / "proto" / "demux" / "wrapper.proto",
)
_OWN_PATH = "demux/wrapper.proto"
_MAX_NAMED = 10
_INTEGERS = frozenset({Primitive.INT, Primitive.BIGINT, Primitive.DECIMAL_20_0})

# a column's position at each level, from the envelope's own columns down
ColumnPath = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Envelope:
    """A compiled envelope, and where among its columns game, schema id and payload are.

    Attributes:
        game: the column of the game: STRING, or a whole number.
        no_game: the value, as text, that means no game: empty, `0`, or the name of an enum's number 0.
        game_names: the names that an enum gives to games; None where the game is a string or an integer.
        schema_id: the column of the schema id, a whole number; None where the envelope has none.
        payload: the column of the payload, BINARY.
    """

    descriptor_set: bytes
    message: str
    columns: Struct
    game: ColumnPath
    no_game: str
    game_names: frozenset[str] | None
    schema_id: ColumnPath | None
    payload: ColumnPath


class _EnvelopeMistake(Exception):
    """A mistake in a setting, without its name and a full stop."""


def envelope_of(settings: WrapperSettings) -> Envelope:
    """Return the compiled envelope; reads its file and what that imports from the same folder.

    Raises:
        SettingsInvalid: the file cannot be read or compiled, or it has no such message or no such fields; one line for
            each mistake, with the nearest name.
    """
    try:
        compiled = _compiled(settings)
        descriptor = pool_of(FileDescriptorSet.FromString(compiled.descriptor_set)).FindMessageTypeByName(
            compiled.message
        )
        shape = shape_of(descriptor)
    except SchemaInvalid as error:
        raise _invalid([f"wrapper: {error.fields.get('reason', error.message)}"]) from error
    except _EnvelopeMistake as mistake:
        raise _invalid([f"wrapper.proto: {mistake}"]) from mistake
    mistakes: list[str] = []

    def find(key: str, dotted: str, suits: Callable[[Value], bool], wanted: str) -> tuple[ColumnPath, Value]:
        try:
            return _find(descriptor, shape, dotted, suits, wanted)
        except _EnvelopeMistake as mistake:
            mistakes.append(f"wrapper.{key}: {mistake}")
            return (), shape

    game, game_value = find("game_field", settings.game_field, _is_game, "a string, an integer or an enum")
    schema_id = None
    if settings.schema_id_field is not None:
        schema_id, _ = find("schema_id_field", settings.schema_id_field, _is_integer, "an integer, or null for none")
    payload, _ = find("payload_field", settings.payload_field, _is_bytes, "bytes")
    if mistakes:
        raise _invalid(mistakes)
    return Envelope(
        compiled.descriptor_set,
        compiled.message,
        columns_of(shape),
        game,
        _no_game(game_value),
        frozenset(name for _, name in game_value.names) if isinstance(game_value, Enumeration) else None,
        schema_id,
        payload,
    )


def _compiled(settings: WrapperSettings) -> CompiledSchema:
    if settings.proto is None:
        schema = RegisteredSchema(1, "demux.wrapper", 1, _own_text(), _OWN_PATH, message=settings.message)
        return compile_schema(schema)
    file = Path(settings.proto)
    text = _text(file)
    if text is None:
        raise _EnvelopeMistake(f"there is no file {settings.proto}")

    def imported(path: str) -> str | None:
        # protoc refuses what is left out here, in its own words
        return None if path_mistake(path) else _text(file.parent / path)

    references = transitive_imports(text, imported)
    return compile_schema(RegisteredSchema(1, "wrapper", 1, text, file.name, references, settings.message))


def _own_text() -> str:
    return next(place for place in _PLACES if place.exists()).read_text(encoding="utf-8")


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise _EnvelopeMistake(f"{file} is not UTF-8 text") from error
    except OSError as error:
        raise _EnvelopeMistake(f"{file} cannot be read: {error.strerror or error}") from error


def _invalid(mistakes: list[str]) -> SettingsInvalid:
    remedy = "Correct the settings under `wrapper`; imports are looked for in the folder of `wrapper.proto`."
    return SettingsInvalid("\n".join(mistakes), remedy, mistakes=tuple(mistakes))


def _find(
    descriptor: Descriptor, shape: Message, dotted: str, suits: Callable[[Value], bool], wanted: str
) -> tuple[ColumnPath, Value]:
    *above, last = dotted.split(".")
    path: list[int] = []
    for name in above:
        declared, at = _declared(descriptor, shape, name)
        value = _single(shape.fields[at], name).value
        if not isinstance(value, Message) or declared.message_type is None:
            raise _EnvelopeMistake(f"{name!r} is of type {_type_name(declared)}, which has no columns inside")
        path.append(at)
        descriptor, shape = declared.message_type, value
    declared, at = _declared(descriptor, shape, last)
    value = _single(shape.fields[at], last).value
    if not suits(value):
        raise _EnvelopeMistake(f"{last!r} is of type {_type_name(declared)}; expected {wanted}")
    return (*path, at), value


def _declared(descriptor: Descriptor, shape: Message, name: str) -> tuple[FieldDescriptor, int]:
    declared = descriptor.fields_by_name.get(name)
    if declared is None:
        names = [field.name for field in descriptor.fields]
        near = get_close_matches(name, names, n=1)
        known = f"the nearest name is {near[0]!r}" if near else f"it has {_listed(names)}"
        raise _EnvelopeMistake(f"{descriptor.full_name} has no field {name!r}; {known}")
    # a column may be called otherwise than its field; the number is the same
    return declared, next(at for at, field in enumerate(shape.fields) if field.number == declared.number)


def _listed(names: list[str]) -> str:
    return ", ".join((*names[:_MAX_NAMED], "…") if len(names) > _MAX_NAMED else names) or "none"


def _single(field: FieldMapping, name: str) -> FieldMapping:
    if field.cardinality is not Cardinality.SINGULAR:
        raise _EnvelopeMistake(f"{name!r} is a {field.cardinality.value} field; one value is needed")
    return field


def _type_name(field: FieldDescriptor) -> str:
    if field.message_type is not None:
        return field.message_type.full_name
    return FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()  # type: ignore[arg-type]


def _is_game(value: Value) -> bool:
    return isinstance(value, Enumeration) or _is_integer(value) or _scalar_column(value) is Primitive.STRING


def _is_integer(value: Value) -> bool:
    return _scalar_column(value) in _INTEGERS


def _is_bytes(value: Value) -> bool:
    return _scalar_column(value) is Primitive.BINARY


def _scalar_column(value: Value) -> ColumnType | None:
    """Return the column of a scalar; None for any other value, a text of JSON among them."""
    return column_type(value) if isinstance(value, Scalar | NullableScalar) else None


def _no_game(value: Value) -> str:
    if isinstance(value, Enumeration):
        return enum_text(0, value)
    return "0" if _is_integer(value) else ""

"""The `.proto` text of a compiled file, for schemas that a package brings without their text."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

_LAST_NUMBER = 536_870_912
_SCALARS = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in FieldDescriptorProto.Type.items()
    if name not in ("TYPE_MESSAGE", "TYPE_ENUM", "TYPE_GROUP")
}
_LABELS = {
    FieldDescriptorProto.LABEL_OPTIONAL: "optional ",
    FieldDescriptorProto.LABEL_REQUIRED: "required ",
    FieldDescriptorProto.LABEL_REPEATED: "repeated ",
}


def proto_text(file: FileDescriptorProto) -> str:
    """The text that compiles to the same messages and enums; without services, comments and options of style."""
    syntax = file.syntax or "proto2"
    lines = [f'syntax = "{syntax}";', f"package {file.package};"]
    lines += [f'import "{name}";' for name in file.dependency]
    for enum in file.enum_type:
        lines += _enum(enum)
    for message in file.message_type:
        lines += _message(message, syntax)
    return "\n".join([*lines, ""])


def comparable(file: FileDescriptorProto) -> FileDescriptorProto:
    """The file without all that the text leaves out."""
    kept = FileDescriptorProto(package=file.package, syntax=file.syntax, dependency=file.dependency)
    kept.enum_type.extend(file.enum_type)
    kept.message_type.extend(file.message_type)
    for message in kept.message_type:
        _forget_style(message)
    for enum in kept.enum_type:
        _forget_enum_style(enum)
    return kept


def _forget_style(message: DescriptorProto) -> None:
    for field in message.field:
        packed = field.options.packed if field.options.HasField("packed") else None
        field.ClearField("options")
        field.ClearField("json_name")
        if packed is not None:
            field.options.packed = packed
    is_map = message.options.map_entry
    message.ClearField("options")
    if is_map:
        message.options.map_entry = True
    for nested in message.nested_type:
        _forget_style(nested)
    # the text has the entries of maps after all other messages
    message.nested_type.sort(key=lambda nested: nested.name)
    for enum in message.enum_type:
        _forget_enum_style(enum)


def _forget_enum_style(enum: EnumDescriptorProto) -> None:
    alias = enum.options.allow_alias
    enum.ClearField("options")
    if alias:
        enum.options.allow_alias = True
    for value in enum.value:
        value.ClearField("options")


def _message(message: DescriptorProto, syntax: str) -> Iterator[str]:
    yield f"message {message.name} {{"
    maps = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
    for nested in message.nested_type:
        if nested.name not in maps:
            yield from _message(nested, syntax)
    for enum in message.enum_type:
        yield from _enum(enum)
    begun: set[int] = set()
    for field in message.field:
        if not _is_member(field):
            yield _field(field, maps, syntax)
        elif field.oneof_index not in begun:
            begun.add(field.oneof_index)
            yield from _oneof(message, field.oneof_index)
    yield from (f"reserved {part.start} to {part.end - 1};" for part in message.reserved_range)
    yield from (f'reserved "{name}";' for name in message.reserved_name)
    for part in message.extension_range:
        yield f"extensions {part.start} to {'max' if part.end == _LAST_NUMBER else part.end - 1};"
    yield "}"


def _oneof(message: DescriptorProto, index: int) -> Iterator[str]:
    yield f"oneof {message.oneof_decl[index].name} {{"
    members = (field for field in message.field if _is_member(field) and field.oneof_index == index)
    yield from (f"{_type(field)} {field.name} = {field.number}{_options(field)};" for field in members)
    yield "}"


def _is_member(field: FieldDescriptorProto) -> bool:
    return field.HasField("oneof_index") and not field.proto3_optional


def _field(field: FieldDescriptorProto, maps: dict[str, DescriptorProto], syntax: str) -> str:
    entry = maps.get(field.type_name.rpartition(".")[2])
    if entry is not None:
        key, value = (_type(part) for part in entry.field)
        return f"map<{key}, {value}> {field.name} = {field.number};"
    implicit = syntax == "proto3" and field.label == field.LABEL_OPTIONAL and not field.proto3_optional
    label = "" if implicit else _LABELS[field.label]
    return f"{label}{_type(field)} {field.name} = {field.number}{_options(field)};"


def _type(field: FieldDescriptorProto) -> str:
    return field.type_name or _SCALARS[field.type]


def _options(field: FieldDescriptorProto) -> str:
    options = []
    if field.HasField("default_value"):
        text = field.type == field.TYPE_STRING
        options.append(f'default = "{field.default_value}"' if text else f"default = {field.default_value}")
    if field.options.HasField("packed"):
        options.append(f"packed = {'true' if field.options.packed else 'false'}")
    return f" [{', '.join(options)}]" if options else ""


def _enum(enum: EnumDescriptorProto) -> Iterator[str]:
    yield f"enum {enum.name} {{"
    if enum.options.allow_alias:
        yield "option allow_alias = true;"
    yield from (f"{value.name} = {value.number};" for value in enum.value)
    yield from (f"reserved {part.start} to {part.end};" for part in enum.reserved_range)
    yield from (f'reserved "{name}";' for name in enum.reserved_name)
    yield "}"

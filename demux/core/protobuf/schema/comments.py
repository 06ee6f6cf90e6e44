"""The comments of a message and its fields in a `.proto` file, for its table. Pure.

protoc keeps comments apart from what they are about, by path: https://protobuf.dev/reference/cpp/ (`SourceCodeInfo`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet, SourceCodeInfo

from demux.core.columns.types import Array, Column, ColumnType, Map, Struct
from demux.core.protobuf.schema.descriptor_pool import pool_of
from demux.core.tables import SILVER_ORIGIN
from demux.core.text import printable

# of one comment, in characters
MAX_LENGTH = 1_000
# of all comments of a table: its schema is in every checkpoint of its log
MAX_TOTAL = 200_000

_OPTIONS = "google/protobuf/descriptor.proto"


@dataclass(frozen=True, slots=True)
class Comments:
    """The comments of a message: that of its table, '' for none, and its columns with theirs."""

    table: str
    columns: Struct

    def __bool__(self) -> bool:
        """Whether there is any comment."""
        return bool(self.table) or has_comments(self.columns)


@lru_cache(maxsize=1024)
def without_comments(descriptor_set: bytes) -> bytes:
    """Return the serialized `FileDescriptorSet` without `SourceCodeInfo`: the same bytes whatever the comments are."""
    files = FileDescriptorSet.FromString(descriptor_set)
    for file in files.file:
        file.ClearField("source_code_info")
    return files.SerializeToString(deterministic=True)


def only_comments(descriptor_set: bytes) -> bytes:
    """Return the serialized `FileDescriptorSet` with nothing in its `SourceCodeInfo` but comments and their paths."""
    files = FileDescriptorSet.FromString(descriptor_set)
    for file in files.file:
        # options are declared in it, no column comes from it, and it has more comments than all others
        locations = () if file.name == _OPTIONS else file.source_code_info.location
        kept = [
            SourceCodeInfo.Location(
                path=at.path, leading_comments=at.leading_comments, trailing_comments=at.trailing_comments
            )
            for at in locations
            if at.leading_comments or at.trailing_comments
        ]
        file.ClearField("source_code_info")
        if kept:
            file.source_code_info.location.extend(kept)
    return files.SerializeToString(deterministic=True)


@lru_cache(maxsize=256)
def comments_of(descriptor_set: bytes, message: str, columns: Struct) -> Comments:
    """Return the comments of the message.

    Args:
        descriptor_set: a serialized `FileDescriptorSet`; one without `SourceCodeInfo` says nothing.
    """
    files = FileDescriptorSet.FromString(descriptor_set)
    texts = {name: text for file in files.file for name, text in _comments_in(file)}
    if not texts:
        return Comments("", columns)
    descriptor = pool_of(files).FindMessageTypeByName(message)
    return Comments(texts.get(message, ""), _limited(_struct(columns, descriptor, texts)))


def clean_comment(comment: str) -> str:
    """Return a comment as one line of visible characters, cut at `MAX_LENGTH`."""
    lines = (line.strip().lstrip("*/").strip() for line in comment.splitlines())
    text = printable(" ".join(word for line in lines for word in line.split()))
    return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 2].rstrip()} …"


def has_comments(columns: Struct) -> bool:
    """Return whether any of the columns, nested ones too, has a comment."""
    return any(column.comment or has_comments(inside(column.type)) for column in columns)


def inside(column_type: ColumnType) -> Struct:
    """Return the columns of a message in the type, also of a list's elements or a map's values; none of a scalar."""
    match column_type:
        case Struct():
            return column_type
        case Array(part) | Map(_, part):
            return inside(part)
        case _:
            return Struct(())


def with_inside(column_type: ColumnType, columns: Struct) -> ColumnType:
    """Return the type with these columns in place of those that `inside` gives."""
    match column_type:
        case Struct():
            return columns
        case Array(part):
            return Array(with_inside(part, columns))
        case Map(key, part):
            return Map(key, with_inside(part, columns))
        case _:
            return column_type


def _comments_in(file: FileDescriptorProto) -> Iterator[tuple[str, str]]:
    """Yield the full name of each message and field of the file that has a comment, and the comment."""
    for at in file.source_code_info.location:
        text = clean_comment(at.leading_comments) or clean_comment(at.trailing_comments)
        if text and (name := _name_at(file, at.path)):
            yield name, text


def _name_at(file: FileDescriptorProto, path: Sequence[int]) -> str | None:
    """Return the full name of the message or field that a path leads to; None for anything else."""
    names = [file.package] if file.package else []
    here: Any = file
    for number, index in zip(path[::2], path[1::2], strict=False):
        kind = type(here).DESCRIPTOR.fields_by_number.get(number)
        if kind is None or kind.name not in {"message_type", "nested_type", "field", "extension"}:
            return None
        declared = getattr(here, kind.name)
        # a schema that came in serialized form may say anything
        if not 0 <= index < len(declared):
            return None
        here = declared[index]
        names.append(here.name)
    return None if len(path) % 2 or here is file else ".".join(names)


def _struct(columns: Struct, message: Descriptor, texts: Mapping[str, str]) -> Struct:
    return Struct(tuple(_column(column, _field(message, column.number), texts) for column in columns))


def _column(column: Column, field: FieldDescriptor | None, texts: Mapping[str, str]) -> Column:
    if field is None:
        return column
    comment = texts.get(field.full_name, "")
    if field.type == FieldDescriptor.TYPE_GROUP and field.message_type is not None:
        # a group declares its field and its type at once, and protoc gives the comment to the type
        comment = comment or texts.get(field.message_type.full_name, "")
    return replace(column, comment=comment, type=_type(column.type, field, texts))


def _type(column_type: ColumnType, field: FieldDescriptor, texts: Mapping[str, str]) -> ColumnType:
    message = field.message_type
    if message is None or not inside(column_type).columns:
        return column_type
    if isinstance(column_type, Map):
        message = message.fields_by_number[2].message_type
        assert message is not None
    return with_inside(column_type, _struct(inside(column_type), message, texts))


def _field(message: Descriptor, number: int) -> FieldDescriptor | None:
    found: FieldDescriptor | None = message.fields_by_number.get(number)
    extensions: Iterable[FieldDescriptor] = [] if found else message.file.pool.FindAllExtensions(message)
    return found or next((one for one in extensions if one.number == number), None)


def _limited(columns: Struct) -> Struct:
    """Return the columns with as many of their comments as a table may have, the outer ones first."""
    left = MAX_TOTAL
    level: list[Column] = list(columns)
    dropped: set[int] = set()
    while level:
        for column in level:
            left -= len(column.comment)
            if left < 0:
                dropped.add(id(column))
        level = [part for column in level for part in inside(column.type)]
    return _without(columns, dropped) if dropped else columns


def _without(columns: Struct, dropped: set[int]) -> Struct:
    return Struct(
        tuple(
            replace(
                column,
                comment="" if id(column) in dropped else column.comment,
                type=with_inside(column.type, _without(inside(column.type), dropped)),
            )
            for column in columns
        )
    )


_MARK = re.compile(r" The comments of this table are those of version (\d{1,10}), schema (\d{1,10})\.")
_MARKED, *_OTHERS = SILVER_ORIGIN


@dataclass(frozen=True, slots=True, order=True)
class CommentSource:
    """A schema version, newer than all that are less: by version of its subject, then by id."""

    version: int
    schema_id: int


def comment_source(columns: Iterable[Column]) -> CommentSource | None:
    """Return the version that is marked in a silver table's columns; None where it marks no version."""
    marks = (_MARK.search(column.comment) for column in columns if is_marked(column))
    return next((CommentSource(int(mark[1]), int(mark[2])) for mark in marks if mark), None)


def marked_origin(by: CommentSource | None) -> tuple[Column, ...]:
    """Return the last columns of a silver table, with the mark."""
    if by is None:
        return SILVER_ORIGIN.columns
    mark = f" The comments of this table are those of version {by.version}, schema {by.schema_id}."
    return (replace(_MARKED, comment=_MARKED.comment + mark), *_OTHERS)


def is_marked(column: Column) -> bool:
    """Return whether it is the top-level column that has the mark."""
    return column.name == _MARKED.name

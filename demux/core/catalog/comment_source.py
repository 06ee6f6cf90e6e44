"""Which schema version a silver table's comments and tags are from: a mark in the comment of `_schema_id`. Pure.

It is there because Delta changes a column's comment in one commit, and gives it back with the table's schema, which
every batch reads anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from demux.core.columns.types import Column
from demux.core.tables import SILVER_ORIGIN

_MARK = re.compile(r" The comments of this table are those of version (\d{1,10}), schema (\d{1,10})\.")
_MARKED, *_OTHERS = SILVER_ORIGIN


@dataclass(frozen=True, slots=True, order=True)
class CommentSource:
    """A schema version, newer than all that are less: by version of its subject, then by id."""

    version: int
    schema_id: int


def comment_source(columns: Iterable[Column]) -> CommentSource | None:
    """Return the version that is marked in a silver table's columns; None where no version said anything yet."""
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

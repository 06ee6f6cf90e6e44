"""The tags of the games' tables in Unity Catalog: what the options of their schemas say."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import SparkSession

from demux.core.catalog.spark_tables import read_table
from demux.core.catalog.sql import held_tags, set_tags
from demux.core.columns.spark import columns_of_spark, message_in
from demux.core.columns.types import Struct
from demux.core.error_mapping import as_demux_error
from demux.core.errors import DemuxError
from demux.core.protobuf.schema.comments import CommentSource, comment_source, without_comments
from demux.core.protobuf.schema.message_selection import has_message
from demux.core.protobuf.schema.option_tags import Tags, tags_of
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.store import SchemaStore
from demux.core.spark.classic import SPARK_ERRORS
from demux.core.storage.table_address import CatalogName, TableAddress

_LOG = logging.getLogger("demux")

# runs a statement and gives its rows
Run = Callable[[str], Sequence[Any]]


class TableTags:
    """Gives the games' tables their tags; safe to share between threads."""

    def __init__(self, spark: SparkSession, schemas: SchemaStore) -> None:
        """Prepare; changes nothing yet."""
        self._spark = spark
        self._schemas = schemas
        self._tagged: set[tuple[CatalogName, CommentSource]] = set()

    def follow(self, table: TableAddress, game: str) -> None:
        """Give the game's table the tags of its newest version; once for each version, and none without a name.

        A tag that is refused is written to the log, and no more.
        """
        name = table.name
        if name is None:
            return
        try:
            schema = read_table(self._spark, table).schema
            columns = columns_of_spark(schema)
            by = comment_source(columns)
            if by is None or (name, by) in self._tagged:
                return
            tags = _tags(self._schemas, game, by, message_in(schema))
            if tags is not None:
                for sentence in tags.left_out:
                    _LOG.warning("%s", sentence)
                tag(lambda statement: self._spark.sql(statement).collect(), name, columns, tags)
            self._tagged.add((name, by))
        except (*SPARK_ERRORS, DemuxError) as error:
            _LOG.warning("The tags of %s are not as the schema says: %s", name.full_name, as_demux_error(error).message)


def tag(run: Run, name: CatalogName, columns: Struct, tags: Tags) -> None:
    """Give the table and its top-level columns the tags that they do not have yet; a second call changes nothing."""
    if not tags:
        return
    of_table, of_columns = held_tags(name)
    held = {row.tag_name: row.tag_value for row in run(of_table)}
    held_columns: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for row in run(of_columns):
        held_columns[row.column_name][row.tag_name] = row.tag_value
    by_number = columns.by_number()
    wanted = {by_number[number].name: each for number, each in tags.columns.items() if number in by_number}
    for statement in set_tags(name, tags.table, wanted, held, held_columns):
        run(statement)


def _tags(schemas: SchemaStore, game: str, by: CommentSource, holds: str | None) -> Tags | None:
    """Return the tags of a schema; None where it cannot be had any more."""
    ref = SchemaRef(by.schema_id)
    answer = schemas.lookup([ref], game)[ref]
    if not isinstance(answer, CompiledSchema):
        return None
    # a new version may have renamed the message
    message = holds if holds is not None and has_message(answer.descriptor_set, holds) else answer.message
    return tags_of(without_comments(answer.descriptor_set), message)

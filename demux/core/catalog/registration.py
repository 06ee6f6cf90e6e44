"""The tables of a root in a catalog: registered by the stage that wrote them, and tagged on Databricks.

Nothing here touches a row: what fails leaves the tables as they are, known by their paths; the next run tries again.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyspark.sql import SparkSession

from demux.core.catalog.sql import (
    CatalogTable,
    bronze_in,
    create_schema,
    create_table,
    drop_table,
    held_tags,
    is_same_place,
    look_into,
    schemas_of,
    set_tags,
    silver_in,
    table_at,
)
from demux.core.columns.spark import columns_of_spark, message_in
from demux.core.columns.types import Struct
from demux.core.error_mapping import named
from demux.core.errors import CatalogConflict, CatalogRefused, DemuxError, ErrorKind
from demux.core.protobuf.schema.comments import CommentSource, comment_source, without_comments
from demux.core.protobuf.schema.message_selection import has_message
from demux.core.protobuf.schema.option_tags import Tags, tags_of
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.root.layout import Layout
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.store import SchemaStore
from demux.core.settings.tables import TableSettings
from demux.core.spark.classic import SPARK_ERRORS

_LOG = logging.getLogger("demux")
_NO_CATALOG = "Where Spark has no such catalog, as on this machine maybe, give `--set tables.catalog=null`."

# runs a statement and gives its rows
Run = Callable[[str], Sequence[Any]]


class CatalogRegistration:
    """Registers the tables of a root under the names of the settings; without `tables.catalog` it does nothing.

    Safe to share between threads. Each table is looked up once in the life of a process.
    """

    def __init__(
        self,
        spark: SparkSession,
        layout: Layout,
        settings: TableSettings,
        schemas: SchemaStore,
        *,
        has_tags: bool,
    ) -> None:
        """Prepare; `has_tags` says whether the catalog is Unity Catalog."""
        self._spark = spark
        self._settings = settings
        self._layout = layout
        self._schemas = schemas
        self._has_tags = has_tags
        self._making = threading.Lock()
        self._known: set[CatalogTable] = set()
        self._tagged: set[tuple[str, CommentSource]] = set()

    def register_bronze(self) -> None:
        """Make bronze, quarantine and the control tables known that are there, and the schemas of all tables.

        Raises:
            CatalogConflict, CatalogRefused: as `register_game`.
        """
        self._register(bronze_in(self._settings, self._layout))

    def register_game(self, game: str) -> None:
        """Make a game's table known, if it is there, and give it its tags.

        A tag that is refused is written to the log, and no more.

        Raises:
            CatalogConflict: the catalog has another table of that name, which is left as it is.
            CatalogRefused: the catalog does not let us; the rows are in the table nevertheless.
        """
        table = silver_in(self._settings, self._layout, game)
        if table is not None:
            self._register([table])
            if self._has_tags:
                self._tag(table, game)

    def require(self) -> None:
        """Check that this Spark has the catalog, before tables go that it should forget.

        Raises:
            CatalogRefused: it has not, or the catalog does not let us look.
        """
        for table in bronze_in(self._settings, self._layout)[:1]:
            try:
                self._spark.sql(look_into(table))
            except SPARK_ERRORS as error:
                raise _not_there(table, error) from error

    def forget(self, location: str) -> None:
        """Let the catalog forget the root's table at this path; files stay, and so does another table of that name.

        Raises:
            CatalogRefused: the catalog does not let us.
        """
        table = table_at(self._settings, self._layout, location)
        if table is None:
            return
        try:
            if self._is_there(table):
                found = self._location(table)
                if found is not None and is_same_place(found, location):
                    self._spark.sql(drop_table(table))
        except SPARK_ERRORS as error:
            raise _not_forgotten(table, error) from error
        self._known.discard(table)

    def _register(self, tables: Iterable[CatalogTable]) -> None:
        for table in tables:
            if table in self._known or not self._layout.storage.table_exists(table.location):
                continue
            try:
                found = self._registered(table)
            except SPARK_ERRORS as error:
                raise _refused(table, error) from error
            if found is None or not is_same_place(found, table.location):
                raise _conflict(table, found)
            self._known.add(table)

    def _registered(self, table: CatalogTable) -> str | None:
        """Return where the catalog has the table, which is made known if it was not."""
        if not self._is_there(table):
            with self._making:
                # who may use a schema may often not create one
                for schema in schemas_of(self._settings):
                    if not self._spark.catalog.databaseExists(schema):
                        self._spark.sql(create_schema(schema))
            self._spark.sql(create_table(table))
        return self._location(table)

    def _is_there(self, table: CatalogTable) -> bool:
        # Spark 3.4 fails where there is no such schema
        has_schema = self._spark.catalog.databaseExists(table.schema_sql)
        return has_schema and self._spark.catalog.tableExists(table.sql)

    def _location(self, table: CatalogTable) -> str | None:
        """Return where a table is that the catalog has; None for what is no table at a path."""
        described = self._spark.sql(f"DESCRIBE TABLE EXTENDED {table.sql}").collect()
        # the columns come first, and one may be called so too
        places = [row.data_type for row in described if row.col_name == "Location"]
        return places[-1] if places else None

    def _tag(self, table: CatalogTable, game: str) -> None:
        try:
            schema = self._spark.read.format("delta").load(table.location).schema
            columns = columns_of_spark(schema)
            by = comment_source(columns)
            if by is None or (table.name, by) in self._tagged:
                return
            tags = _tags(self._schemas, game, by, message_in(schema))
            if tags is not None:
                for sentence in tags.left_out:
                    _LOG.warning("%s", sentence)
                tag(lambda statement: self._spark.sql(statement).collect(), table, columns, tags)
            self._tagged.add((table.name, by))
        except (*SPARK_ERRORS, DemuxError) as error:
            _LOG.warning("The tags of %s are not as the schema says: %s", table.full_name, named(error).message)


def tag(run: Run, table: CatalogTable, columns: Struct, tags: Tags) -> None:
    """Give the table and its top-level columns the tags that they do not have yet; a second call changes nothing."""
    if not tags:
        return
    of_table, of_columns = held_tags(table)
    held = {row.tag_name: row.tag_value for row in run(of_table)}
    held_columns: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for row in run(of_columns):
        held_columns[row.column_name][row.tag_name] = row.tag_value
    by_number = columns.by_number()
    wanted = {by_number[number].name: each for number, each in tags.columns.items() if number in by_number}
    for statement in set_tags(table, tags.table, wanted, held, held_columns):
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


def _conflict(table: CatalogTable, found: str | None) -> CatalogConflict:
    is_at = "that is not a table at a path" if found is None else f"at {found}"
    return CatalogConflict(
        f"The catalog has a {table.full_name} already {is_at}, and this one is at {table.location}.",
        "Rename or drop that one, or name another schema in the section tables of the settings; nothing was replaced, "
        "and the records are in.",
        table=table.full_name,
        found=found,
        location=table.location,
    )


def _not_there(table: CatalogTable, error: BaseException) -> DemuxError:
    return _catalog_error(
        table,
        error,
        f"The catalog cannot be asked for {table.full_name}, so nothing was removed",
        f"Run it where Spark has the catalog, so that it forgets the tables. {_NO_CATALOG}",
    )


def _not_forgotten(table: CatalogTable, error: BaseException) -> DemuxError:
    return _catalog_error(
        table,
        error,
        f"The catalog did not drop {table.full_name}",
        "Be the table's owner, or have it dropped, and run the same command again: it removes the rest.",
    )


def _refused(table: CatalogTable, error: BaseException) -> DemuxError:
    return _catalog_error(
        table,
        error,
        f"The catalog did not register {table.full_name}",
        "Let whom the task runs as use the catalog and create schemas, tables and external tables there; the records "
        f"are in, and the next run registers the table. {_NO_CATALOG}",
    )


def _catalog_error(table: CatalogTable, error: BaseException, what: str, remedy: str) -> DemuxError:
    """Return the refusal as one of our errors; a transient error stays as it is."""
    failure = named(error)
    if failure.kind is ErrorKind.TRANSIENT:
        return failure
    return CatalogRefused(f"{what}: {failure.message}", remedy, table=table.full_name)

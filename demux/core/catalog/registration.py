"""Tables of a root in a catalog: each is known there by its name before its first row.

Nothing here touches a row. A table is made known by its place, with the columns that its log has: whoever reads or
writes files finds it at its path, and Spark by its name.
"""

from __future__ import annotations

import threading

from pyspark.sql import SparkSession

from demux.core.catalog.sql import create_schema, create_table, drop_table, is_same_place, look_into
from demux.core.error_mapping import as_demux_error
from demux.core.errors import CatalogConflict, CatalogRefused, DemuxError, ErrorKind
from demux.core.spark.classic import SPARK_ERRORS
from demux.core.storage.table_address import CatalogName, CatalogNames, TableAddress

_NO_CATALOG = "Where Spark has no such catalog, give `--set tables.catalog=null`."

# each table is looked up once in a command
_KNOWN: set[TableAddress] = set()
_MAKING = threading.Lock()


def make_known(spark: SparkSession, table: TableAddress) -> None:
    """Let the catalog have the table at its path; a second call does nothing, and so does one without a name.

    Safe in several threads.

    Raises:
        CatalogConflict: the catalog has another table of that name, which is left as it is.
        CatalogRefused: the catalog does not let us.
    """
    if table.name is None or table in _KNOWN:
        return
    try:
        found = _place_of(spark, table.name) if _is_there(spark, table.name) else _made(spark, table.name, table.path)
    except SPARK_ERRORS as error:
        raise _refused(table.name, error) from error
    if found is None or not is_same_place(found, table.path):
        raise _conflict(table.name, table.path, found)
    _KNOWN.add(table)


def is_known(table: TableAddress) -> bool:
    """Return whether the catalog is known to have the table, as far as this command has asked."""
    return table in _KNOWN


def make_room(spark: SparkSession, table: TableAddress) -> bool:
    """Return whether a write makes the table under its name, as there is none at its path; else the catalog has it.

    Raises:
        CatalogConflict, CatalogRefused: as `make_known`.
    """
    from delta.tables import DeltaTable

    if table.name is None or table in _KNOWN:
        return False
    try:
        if is_new := not DeltaTable.isDeltaTable(spark, table.path):
            _clear(spark, table.name, table.path)
    except SPARK_ERRORS as error:
        raise _refused(table.name, error) from error
    if not is_new:
        make_known(spark, table)
    return is_new


def look_again() -> None:
    """Let each table be looked up again: for a new command of the same process."""
    _KNOWN.clear()


def require_catalog(spark: SparkSession, names: CatalogNames | None) -> None:
    """Check that this Spark has the catalog, before tables go that it should forget; without one there is no check.

    Raises:
        CatalogRefused: it has not, or the catalog does not let us look.
    """
    if names is None:
        return
    try:
        spark.sql(look_into(names.catalog, names.bronze))
    except SPARK_ERRORS as error:
        raise _catalog_error(
            names.catalog,
            error,
            f"The catalog {names.catalog} cannot be asked, so nothing was removed",
            f"Run it where Spark has the catalog, so that it forgets the tables. {_NO_CATALOG}",
        ) from error


def forget(spark: SparkSession, table: TableAddress) -> None:
    """Let the catalog forget the table at this path; files stay, and so does another table of that name.

    Raises:
        CatalogRefused: the catalog does not let us.
    """
    if table.name is None:
        return
    try:
        found = _place_of(spark, table.name) if _is_there(spark, table.name) else None
        if found is not None and is_same_place(found, table.path):
            spark.sql(drop_table(table.name))
    except SPARK_ERRORS as error:
        raise _catalog_error(
            table.name.full_name,
            error,
            f"The catalog did not drop {table.name.full_name}",
            "Be the table's owner, or have it dropped, and run the same command again: it removes the rest.",
        ) from error
    _KNOWN.discard(table)


def _clear(spark: SparkSession, name: CatalogName, path: str) -> None:
    """Make the schema, and take away what the catalog has of a table that was at the path before."""
    try:
        if not _is_there(spark, name):
            _make_schema(spark, name)
            return
        found = _place_of(spark, name)
    except SPARK_ERRORS as error:
        # Delta does not open a table whose files are gone
        if path not in str(error):
            raise
    else:
        if found is None or not is_same_place(found, path):
            raise _conflict(name, path, found)
    spark.sql(drop_table(name))


def _make_schema(spark: SparkSession, name: CatalogName) -> None:
    with _MAKING:
        # who may use a schema may often not create one
        if not spark.catalog.databaseExists(name.schema_sql):
            spark.sql(create_schema(name))


def _made(spark: SparkSession, name: CatalogName, path: str) -> str | None:
    _make_schema(spark, name)
    spark.sql(create_table(name, path))
    # another process may have been faster, with another table
    return _place_of(spark, name)


def _is_there(spark: SparkSession, name: CatalogName) -> bool:
    # Spark 3.4 fails where there is no such schema
    return spark.catalog.databaseExists(name.schema_sql) and spark.catalog.tableExists(name.sql)


def _place_of(spark: SparkSession, name: CatalogName) -> str | None:
    """Return where a table is that the catalog has; None for what is no table at a path."""
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {name.sql}").collect()
    # the columns come first, and one may be called so too
    places = [row.data_type for row in described if row.col_name == "Location"]
    return places[-1] if places else None


def _conflict(name: CatalogName, path: str, other_path: str | None) -> CatalogConflict:
    is_at = "that is not a table at a path" if other_path is None else f"at {other_path}"
    return CatalogConflict(
        f"The catalog has a {name.full_name} already {is_at}, and this one is at {path}.",
        "Rename or drop that one, or name another schema in the section tables of the settings; nothing was replaced, "
        "and no row is lost.",
        table=name.full_name,
        found=other_path,
        location=path,
    )


def _refused(name: CatalogName, error: BaseException) -> DemuxError:
    return _catalog_error(
        name.full_name,
        error,
        f"The catalog did not register {name.full_name}",
        "Let whom the task runs as use the catalog and create schemas, tables and external tables there; no row is "
        f"lost, and the next run tries again. {_NO_CATALOG}",
    )


def _catalog_error(table: str, error: BaseException, what: str, remedy: str) -> DemuxError:
    """Return the refusal as one of our errors; a transient error stays as it is."""
    failure = as_demux_error(error)
    if failure.kind is ErrorKind.TRANSIENT:
        return failure
    return CatalogRefused(f"{what}: {failure.message}", remedy, table=table)

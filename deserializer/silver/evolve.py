"""The silver table: its columns now, columns added to it, and the frames that are written to it and to quarantine."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from demux.core.catalog.spark_tables import read_table, save_table, sql_name
from demux.core.columns.spark import MESSAGE, columns_of_spark, metadata_of, spark_struct
from demux.core.columns.types import Column, Struct
from demux.core.error_mapping import as_demux_error
from demux.core.names import quote_identifier
from demux.core.spark.classic import SPARK_ERRORS
from demux.core.storage.table_address import TableAddress
from demux.core.tables import SILVER_ORIGIN
from deserializer.decoders.schema_decision import Decisions
from deserializer.decoders.select import ARROW, RowDecoder
from deserializer.silver.rewrite import widen, widen_schema

_LOG = logging.getLogger("demux")


def say(spark: SparkSession, saying: Iterable[str]) -> None:
    """Run statements that let a table's comments follow its schemas.

    What goes wrong is logged: rows must not wait for a comment, and the next batch tries again.
    """
    try:
        for statement in saying:
            spark.sql(statement)
    except SPARK_ERRORS as error:
        _LOG.warning("A table's comments cannot follow its newest schema: %s", as_demux_error(error).message)


def evolve(spark: SparkSession, table: TableAddress, columns: Struct, message: str | None = None) -> None:
    """Give the table these payload columns, nested ones too, before the origin's; a second call does nothing.

    For wider numbers its rows are rewritten, first and in a commit of their own: a crash in between leaves a table
    that lacks the new columns, and the second call adds them.

    Args:
        spark: the session.
        table: the table.
        columns: the payload columns that it has now, some wider, and after them the new ones (`schema_merge`).
        message: the full name of the message that it holds.
    """
    now = _schema(spark, table)
    wanted = spark_struct(Struct((*columns, *SILVER_ORIGIN)))
    if columns_of_spark(now) == columns_of_spark(wanted):
        return
    wider = widen_schema(now, columns)
    if wider != now:
        _LOG.info("%s gets wider columns: it is rewritten", table.path, extra={"table": table.path})
        widen(spark, table, now, wider)
        now = _schema(spark, table)
    before = columns_of_spark(now)
    if set(before) != set(columns_of_spark(wanted)):
        # a column that is there keeps its metadata
        names = {column.name for column in before}
        added = [column for column in columns if column.name not in names]
        nothing = _of_message(spark.createDataFrame([], wanted), added, message)
        save_table(spark, nothing.write.mode("append").option("mergeSchema", "true"), table)
        now = _schema(spark, table)
    # delta adds at the end, behind the origin's columns; also repairs a crash in between
    for name, place in moves([field.name for field in now.fields], [field.name for field in wanted.fields]):
        spark.sql(f"ALTER TABLE {sql_name(spark, table)} ALTER COLUMN {quote_identifier(name)} {place}")


def _schema(spark: SparkSession, table: TableAddress) -> StructType:
    return read_table(spark, table).schema


def moves(now: list[str], wanted: list[str]) -> list[tuple[str, str]]:
    """Return the column moves, each a name and its SQL place, that take one order of the same names to the other."""
    order = list(now)
    result = []
    for position, name in enumerate(wanted):
        if order[position] == name:
            continue
        place = "FIRST" if position == 0 else f"AFTER {quote_identifier(wanted[position - 1])}"
        order.remove(name)
        order.insert(position, name)
        result.append((name, place))
    return result


def silver_rows(frame: DataFrame, decisions: Decisions, decoder: RowDecoder = ARROW) -> DataFrame:
    """Return every row of a batch in the table's columns, and `REFUSED`."""
    decoded_at = F.current_timestamp().alias("_decoded_at", metadata=metadata_of(SILVER_ORIGIN.columns[-1]))
    rows = decoder.rows(frame, decisions).select("*", decoded_at)
    return _of_message(rows, decisions.columns.columns, decisions.message)


def _of_message(frame: DataFrame, columns: Sequence[Column], message: str | None) -> DataFrame:
    """Return the frame with the message's name at the first of the payload columns, from where a table takes it over.

    At one column only: Spark 3.4's optimizer compares every renamed column with all others.
    """
    if message is None or not columns:
        return frame
    first = columns[0]
    renamed = F.col(quote_identifier(first.name)).alias(first.name, metadata={**metadata_of(first), MESSAGE: message})
    return frame.select(*(renamed if name == first.name else F.col(quote_identifier(name)) for name in frame.columns))

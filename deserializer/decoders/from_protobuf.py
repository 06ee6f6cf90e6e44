"""Bronze rows to silver rows by Spark's own `from_protobuf`: the same rows as the `arrow` decoder's.

A payload is read by the lowered descriptor, and the struct written again by `to_protobuf`. Where the bytes are equal,
the struct holds all that the payload says, and the column rules are applied to it as Spark SQL. Where they differ
(unknown or doubled fields, foreign encodings, malformed bytes), the reference decides: it refuses the row, or writes
the same message in canonical bytes, and those are read instead, beside what the row has no column for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import pandas as pd
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import BinaryType, StructField, StructType

from demux.core.columns.spark import metadata_of, spark_struct
from demux.core.columns.types import Column as TableColumn
from demux.core.columns.types import Struct
from demux.core.delta.batch_commit import REFUSED
from demux.core.protobuf.decode.decoder import decoder_of, drops
from demux.core.protobuf.decode.lowered_descriptor import lower_message
from demux.core.protobuf.decode.reference_parser import MalformedRow, ReferenceParser, parse
from demux.core.protobuf.schema.column_mapping import Message, columns_of
from demux.core.protobuf.schema.descriptor_pool import Readable, pool_of
from demux.core.schemas.ref import SchemaRef
from demux.core.tables import SILVER_RESERVED
from deserializer.decoders.arrow import ORIGIN, REF
from deserializer.decoders.from_protobuf_checks import Oneofs, canonical_sql, lawful_sql, oneofs_of, rewritable_sql
from deserializer.decoders.from_protobuf_columns import row_sql
from deserializer.decoders.from_protobuf_functions import Functions, functions_of
from deserializer.decoders.schema_decision import Decisions, WriterSchema

# the message in canonical bytes, and what the table has no column for
REPAIRED = StructType([StructField("payload", BinaryType()), StructField("rescued", BinaryType())])


@dataclass(frozen=True, slots=True)
class _Branch:
    """What is done with the rows of one schema ref; `number` counts the branches of a batch."""

    number: int
    ref: SchemaRef
    schema_id: int
    shape: Message
    oneofs: Oneofs
    functions: Functions

    @property
    def rows(self) -> Column:
        """True for the rows of this schema ref."""
        values = (self.ref.schema_id, self.ref.guid, self.ref.message_indexes)
        same = [F.col(column.name).eqNullSafe(F.lit(value)) for column, value in zip(REF, values, strict=True)]
        return same[0] & same[1] & same[2]

    @property
    def parsed(self) -> str:
        """The column of the struct as the payload has it."""
        return f"_parsed_{self.number}"

    @property
    def settled(self) -> str:
        """The column of the struct that counts; NULL where the reference refused the payload."""
        return f"_settled_{self.number}"


def native_rows(frame: DataFrame, decisions: Decisions, descriptors: Path | None) -> DataFrame:
    """Return every row of a batch in the columns of `silver_columns`, in one pass over the rows.

    Before Spark 3.5 the lowered descriptors are written as files, for every executor to read.

    Args:
        frame: the columns of `deserializer.decoders.arrow.INPUT`.
        decisions: at least one writer, all of them suited (`deserializer.decoders.select.unsuited_reason`).
        descriptors: absolute path of the folder for descriptor files, before Spark 3.5.
    """
    writers = decisions.writers
    branches = [_branch(at, ref, writer, descriptors) for at, (ref, writer) in enumerate(writers.items())]
    # a wrapper without payload holds a message whose fields are all unset
    payload = F.coalesce("payload", F.lit(b""))
    parsed = frame.select(
        "*", *[each.functions.read(F.when(each.rows, payload)).alias(each.parsed) for each in branches]
    )
    judged = parsed.select(
        "*",
        _per_branch(branches, lambda each: _is_canonical(each, payload)).alias("_canonical"),
        _per_branch(branches, lambda each: F.lit(each.number)).alias("_branch"),
        _per_branch(branches, lambda each: F.lit(each.schema_id)).alias("_resolved_id"),
        _per_branch(branches, lambda each: F.lit(drops(columns_of(each.shape), decisions.columns))).alias("_drops"),
    )
    doubtful = F.when(~F.col("_canonical") | F.col("_drops"), payload)
    repaired = judged.select(
        "*", repairing([*writers.values()], decisions.columns)("_branch", doubtful).alias("_repaired")
    )
    settled = repaired.select("*", *[_settled(each).alias(each.settled) for each in branches])
    table = spark_struct(decisions.columns)
    row = _per_branch(branches, lambda each: _row(each, decisions, table))
    return settled.select("*", row.alias("_row")).select(
        *[F.col("_row").getField(column.name).alias(column.name) for column in decisions.columns],
        *[_origin(column) for column in ORIGIN],
        F.col("_row").isNull().alias(REFUSED),
    )


def _origin(column: TableColumn) -> Column:
    match column.name:
        case "_schema_id":
            found = F.coalesce("_resolved_id", "schema_id")
        case "_rescued":
            found = F.col("_repaired").getField("rescued")
        case _:
            found = F.col(column.name.removeprefix("_"))
    return found.alias(column.name, metadata=metadata_of(column))


def repairing(writers: Sequence[WriterSchema], table: Struct) -> Callable[..., Column]:
    """Return a Spark function of the writer's number and payload, which gives a struct of `REPAIRED`.

    Both parts are NULL where the payload is malformed, or none is given.
    """

    def repair(numbers: pd.Series, payloads: pd.Series) -> pd.DataFrame:
        given = payloads.notna()
        repaired = pd.DataFrame({name: pd.Series([None] * len(payloads), dtype=object) for name in REPAIRED.names})
        for row in given[given].index:
            repaired.loc[row] = _repaired(writers[int(numbers[row])], bytes(payloads[row]), table)
        return repaired

    # its stubs ask for an argument that its documentation calls deprecated
    made: Any = pandas_udf
    return cast("Callable[..., Column]", made(repair, REPAIRED))


def _branch(number: int, ref: SchemaRef, writer: WriterSchema, descriptors: Path | None) -> _Branch:
    shape = decoder_of(writer.descriptor_set, writer.message, SILVER_RESERVED).shape
    pool = pool_of(FileDescriptorSet.FromString(writer.descriptor_set))
    descriptor = lower_message(shape, "proto2").SerializeToString(deterministic=True)
    functions = functions_of(descriptor, descriptors)
    return _Branch(number, ref, writer.schema_id, shape, oneofs_of(pool, shape), functions)


def _per_branch(branches: list[_Branch], column: Callable[[_Branch], Column]) -> Column:
    first, *others = branches
    result = F.when(first.rows, column(first))
    for branch in others:
        result = result.when(branch.rows, column(branch))
    return result


def _is_canonical(branch: _Branch, payload: Column) -> Column:
    written = branch.functions.write(F.expr(rewritable_sql(branch.parsed, branch.shape)))
    unambiguous = F.expr(canonical_sql(branch.parsed, branch.shape, branch.oneofs))
    return F.coalesce((written == payload) & unambiguous, F.lit(False))


def _settled(branch: _Branch) -> Column:
    again = branch.functions.read(F.when(branch.rows, F.col("_repaired").getField("payload")))
    return F.when(F.col("_canonical"), F.col(branch.parsed)).otherwise(again)


def _row(branch: _Branch, decisions: Decisions, table: StructType) -> Column:
    lawful = F.expr(lawful_sql(branch.settled, branch.shape))
    # the cast gives names, wider numbers and the metadata that Delta keeps
    return F.when(lawful, F.expr(row_sql(branch.settled, branch.shape, decisions.columns)).cast(table))


def _repaired(writer: WriterSchema, payload: bytes, table: Struct) -> tuple[bytes | None, bytes | None]:
    reference = _reference_of(writer.descriptor_set, writer.message)
    try:
        reference.row(payload)
    except MalformedRow:
        return None, None
    message = parse(reference.message, payload)
    message.DiscardUnknownFields()
    decoder = decoder_of(writer.descriptor_set, writer.message, SILVER_RESERVED)
    return message.SerializeToString(), decoder.leftover(payload, table)


@lru_cache(maxsize=256)
def _reference_of(descriptor_set: bytes, message: str) -> ReferenceParser:
    files = FileDescriptorSet.FromString(descriptor_set)
    pool = pool_of(files)
    shape = decoder_of(descriptor_set, message, SILVER_RESERVED).shape
    return ReferenceParser(Readable(files, pool, message).message, shape, pool)

"""A silver table as it is once all its rows are made again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql.types import StructType

from demux.core.columns.spark import MESSAGE, columns_of_spark, message_in, spark_struct
from demux.core.schemas.ref import SchemaRef
from demux.core.settings.games import Contract, SchemaChanges
from demux.core.tables import SILVER_RESERVED
from deserializer.decoders.schema_decision import Decisions, SchemaLookup, decide
from deserializer.silver.comments import Description, description_of
from deserializer.silver.file_table import payload_in


@dataclass(frozen=True, slots=True)
class RebuiltTable:
    """The table as it is to be.

    Attributes:
        decisions: what is done with each row.
        schema: the table's.
        comment: the table's; empty for the one that it has.
    """

    decisions: Decisions
    schema: StructType
    comment: str


def rebuilt_table(
    now: StructType, answers: Mapping[SchemaRef, SchemaLookup], contract: Contract, rows: Mapping[SchemaRef, int]
) -> RebuiltTable:
    """Return what the table is to be: one that evolves gets the columns of these schemas alone, others keep theirs.

    Args:
        now: the table's schema; empty without a table.
        answers: what each ref of the rows means for the game.
        contract: what the table does with schemas that would change it.
        rows: how many rows have each ref.

    Raises:
        ApprovalNeeded: the contract asks first.
    """
    if contract.mode is SchemaChanges.EVOLVE:
        now = StructType([])
    everything = columns_of_spark(now)
    decisions = decide(payload_in(everything), answers, message_in(now), contract, rows=rows)
    description = description_of(decisions, answers, everything)
    schema = _schema(description, decisions.message, now)
    return RebuiltTable(replace(decisions, columns=payload_in(columns_of_spark(schema))), schema, description.comment)


def _schema(description: Description, message: str | None, now: StructType) -> StructType:
    """Return the table's schema; a column that it has now stays as it is, unless a newer schema says more of it."""
    before = {} if description.is_new else {field.name: field for field in now.fields}
    fields = list(spark_struct(description.all_columns).fields)
    if message is not None and fields[0].name not in SILVER_RESERVED:
        fields[0].metadata[MESSAGE] = message
    kept = (before.get(field.name, field) for field in fields)
    same = [
        old if columns_of_spark(StructType([old])) == columns_of_spark(StructType([new])) else new
        for old, new in zip(kept, fields, strict=True)
    ]
    return StructType(same)

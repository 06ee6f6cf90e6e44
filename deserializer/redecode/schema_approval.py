"""Which changed schemas a game's rows wait for, where its table asks before it changes, and approving them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from demux.core.catalog.spark_tables import read_table
from demux.core.columns.arrow import arrow_fields
from demux.core.control.games_and_rounds import approvals_of, approve
from demux.core.delta.scan import data_files, only_spark_reads, scan
from demux.core.errors import ApprovalNeeded, NothingToApprove, SchemaUnknown
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.store import SchemaStore
from demux.core.settings.settings import Sink
from deserializer.decoders.arrow import REF, by_ref
from deserializer.decoders.schema_decision import decide
from deserializer.offsets.bronze_days import plain_bronze
from deserializer.redecode.redecoder import require_game
from deserializer.silver.backend import tables_of


def approve_schemas(
    spark: SparkSession | None,
    layout: Layout,
    schemas: SchemaStore,
    game: str,
    registry: str,
    schema_ids: tuple[int, ...],
    now: datetime,
) -> tuple[int, ...]:
    """Return the ids of the schemas that are approved now; a second call changes nothing, and rounds may continue.

    Args:
        spark: the session, for tables that only Spark reads.
        layout: where the tables are.
        schemas: the schemas in use.
        game: the exact game name.
        registry: the name of the game's registry in the settings.
        schema_ids: which ones, those of later rows too; none: all that the game's rows in bronze wait for.
        now: the time of the approval.

    Raises:
        GameUnknown: bronze has no row of the game.
        NothingToApprove: the game waits for none, or its registry does not have one of these.
        RegistryUnavailable: a schema is not known here and the registry does not answer.
        TableUnsuited: only Spark reads bronze or the game's table, and there is no session.
    """
    require_game(spark, layout, game)
    if schema_ids:
        _require_known(schemas, game, schema_ids)
    else:
        schema_ids = pending_approvals(spark, layout, schemas, game)
    if not schema_ids:
        raise NothingToApprove(
            f"No row of the game {shlex.quote(game)} waits for an approval.",
            "Name a schema that is to come by --schema, or set games.schema_changes to ask.",
            game=game,
        )
    approve(approvals_of(spark, layout), game, registry, schema_ids, now)
    return schema_ids


def pending_approvals(spark: SparkSession | None, layout: Layout, schemas: SchemaStore, game: str) -> tuple[int, ...]:
    """Return the ids of the schemas that rows of the game in bronze have, and that are not approved yet."""
    refs = _refs_in_bronze(spark, layout, game)
    table = tables_of(spark, layout, "", Sink.AUTO).silver(names_of(game).key)
    try:
        decide(table.columns, schemas.lookup(refs, game), table.message, schemas.contract(game), rows=refs)
    except ApprovalNeeded as needed:
        return needed.schema_ids
    return ()


def _refs_in_bronze(spark: SparkSession | None, layout: Layout, game: str) -> Mapping[SchemaRef, int]:
    """Return how many rows of the game bronze has of each schema ref."""
    found: Counter[SchemaRef] = Counter()
    bronze = plain_bronze(layout)
    if bronze is not None:
        files = [one for one in data_files(bronze, layout.bronze) if one.constants["game_name"] == game]
        for batch in scan(layout.storage, files, arrow_fields(REF)):
            found.update({ref: len(rows) for ref, rows in by_ref(batch)})
        return found
    if spark is None:
        raise only_spark_reads(layout.bronze)
    names = [column.name for column in REF]
    rows = read_table(spark, layout.storage.address(layout.bronze)).where(F.col("game_name") == game)
    return {SchemaRef(*(row[name] for name in names)): row["count"] for row in rows.groupBy(*names).count().collect()}


def _require_known(schemas: SchemaStore, game: str, schema_ids: tuple[int, ...]) -> None:
    answers = schemas.lookup([SchemaRef(schema_id) for schema_id in schema_ids], game)
    for unknown in (answer for answer in answers.values() if isinstance(answer, SchemaUnknown)):
        raise NothingToApprove(unknown.message, "See `demux schemas list` for the schemas that there are.", game=game)

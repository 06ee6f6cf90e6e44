"""A silver table with all columns that the schemas of some rows ask for, and the decisions about these rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from demux.core.catalog.registration import make_known
from demux.core.columns.types import Struct
from demux.core.error_mapping import as_demux_error
from demux.core.errors import DemuxError
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.store import SchemaStore
from demux.core.settings.games import EVOLVE, Contract
from demux.core.storage.files import Storage
from demux.core.tables import SILVER_ORIGIN
from deserializer.decoders.schema_decision import Decisions, SchemaLookup, decide
from deserializer.silver.backend import GameTable
from deserializer.silver.comments import description_of
from deserializer.silver.spark_table import SilverBySpark

# the least that is decided at the same time: a column that Spark adds costs commits that wait more than they work
_DECIDED_AT_ONCE = 4


def fit(
    spark: SparkSession,
    storage: Storage,
    table: GameTable,
    answers: Mapping[SchemaRef, SchemaLookup],
    contract: Contract = EVOLVE,
    rows: Mapping[SchemaRef, int] | None = None,
) -> Decisions:
    """Return what to do with rows of each schema ref; the table is there then, by its name too, with all columns.

    Args:
        spark: the session, for tables whose rows must be rewritten.
        storage: how files are reached.
        table: the game's table.
        answers: what each ref means for the game.
        contract: what the game's table does with schemas that would change it.
        rows: how many rows of the batch have each ref; None: not counted.

    Raises:
        ApprovalNeeded: the contract asks first; nothing was changed.
        CatalogConflict, CatalogRefused: the table cannot have its name in the catalog.
    """
    decisions = decide(table.columns, answers, table.message, contract, rows=rows)
    description = description_of(decisions, answers, table.everything)
    is_new = not table.exists
    if is_new:
        table.create(description.all_columns, decisions.message, description.comment)
    make_known(spark, storage.address(table.path))
    if is_new:
        return decisions
    changes = description.is_new or Struct((*decisions.columns, *SILVER_ORIGIN)) != table.everything
    if changes and not table.alter(description, decisions.message):
        SilverBySpark(spark, storage, table.path).alter(description, decisions.message)
        table.refresh()
    return decisions


def learn(
    schemas: SchemaStore,
    refs: Mapping[str, Collection[SchemaRef]],
    decide_one: Callable[[str, Mapping[SchemaRef, SchemaLookup]], Decisions],
    threads: int,
) -> dict[str, Decisions | DemuxError]:
    """Return what is decided about the schemas of each game, or why nothing is.

    Args:
        schemas: the schemas in use.
        refs: of each game's rows, those too that are known.
        decide_one: decides about a game's; is called in several threads.
        threads: how many requests to make at the same time; at least 4 games are decided.
    """

    def decided(game: str) -> Decisions | DemuxError:
        answers = found[game]
        try:
            return answers if isinstance(answers, DemuxError) else decide_one(game, answers)
        except Exception as error:  # one game's failure must not stop its neighbours
            return as_demux_error(error)

    found = schemas.lookup_all(refs)
    with ThreadPoolExecutor(max(_DECIDED_AT_ONCE, threads), thread_name_prefix="learn") as pool:
        return dict(zip(found, pool.map(decided, found), strict=True))

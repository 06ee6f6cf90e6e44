"""Records counted by where they are: DuckDB's SQL over the tables of a reading. Pure.

No value of data is part of the text: values are in registered tables (`consistent_snapshot`).
"""

from __future__ import annotations

from dataclasses import fields
from typing import TypeAlias

from demux.core.causes import RemovalReason, Stage
from demux.core.settings.source import SourceKind
from demux.operations.reconcile.balance import Grain, RecordLocations, SourceLocations

# the columns that say where a record is, in a view of one row for each record
Counted: TypeAlias = "type[RecordLocations] | type[SourceLocations]"

_AT_BRONZE = f"stage = '{Stage.BRONZE.value}'"
_AT_SILVER = f"stage = '{Stage.SILVER.value}'"
# what tells a row of bronze from all others, but for copies that its source holds
_IDENTITY = "game_name, record_id, batch_id"
_ROW = "game_name AS game, record_id AS id"
_POSITION = 'origin, topic, "partition", "offset", record_id'
_HAS_POSITION = '(topic IS NOT NULL AND "partition" IS NOT NULL AND "offset" IS NOT NULL)'
# a source table with positions may hold one as often as it likes
_FROM_DELTA = f"origin = '{SourceKind.DELTA.value}'"
_UNIQUE = f"NOT ({_FROM_DELTA} AND {_HAS_POSITION}) AS is_unique"


def both_readings(name: str, *, same: bool) -> str:
    """Return the view `name` of the tables `name_before` and `name_now`: their rows, and in which of the two each is.

    Args:
        same: whether both are one version of the table, which then is read once.
    """
    now = f"SELECT *, {'TRUE' if same else 'NULL'} AS is_before, TRUE AS is_now FROM {name}_now"
    before = f"SELECT *, TRUE AS is_before, NULL AS is_now FROM {name}_before"
    return f"CREATE OR REPLACE TEMP VIEW {name} AS {now if same else f'{before} UNION ALL {now}'}"


def _columns(counted: Counted) -> list[str]:
    return [field.name for field in fields(counted)]


def _not_in(rows: str, table: str, keys: str) -> str:
    """Return the rows that the table does not have by these keys; of the table, only what they have is remembered."""
    return f"{rows} ANTI JOIN (SELECT {keys} FROM {table} SEMI JOIN {rows} USING ({keys})) USING ({keys})"


# A row has TRUE for each place where it is, and NULL for the others: COUNT counts it. Of a retirement that was
# interrupted, bronze may still have rows: they are not `retired`. A record that is nowhere any more, being forgotten,
# is not in `places`. A name that was refused is not a game.
PLACES_VIEWS = f"""
CREATE TEMP VIEW retired AS
SELECT * FROM {_not_in("removed", "bronze", _IDENTITY)} WHERE reason = '{RemovalReason.RETIRED.value}';
CREATE TEMP VIEW forgotten AS SELECT * FROM removed WHERE reason = '{RemovalReason.FORGOTTEN.value}';

CREATE TEMP VIEW placed AS
SELECT {_ROW}, batch_id AS batch, TRUE AS bronze, NULLIF(batch_id <= bound, FALSE) AS due
FROM bronze LEFT JOIN bounds ON bounds.game = game_name
UNION ALL BY NAME SELECT game, _record_id AS id, TRUE AS silver FROM silver
UNION ALL BY NAME SELECT {_ROW}, is_before AS quarantine, is_now AS quarantine_now FROM quarantine WHERE {_AT_SILVER}
UNION ALL BY NAME SELECT {_ROW}, TRUE AS dropped FROM dropped WHERE {_AT_SILVER}
UNION ALL BY NAME SELECT {_ROW}, TRUE AS dropped FROM forgotten
UNION ALL BY NAME SELECT {_ROW}, batch_id AS batch, TRUE AS bronze, TRUE AS due, TRUE AS retired FROM retired;

CREATE TEMP VIEW places AS
SELECT game, id, MIN(batch) AS batch, {", ".join(f"COUNT({name}) AS {name}" for name in _columns(RecordLocations))}
FROM placed GROUP BY game, id
HAVING COUNT(bronze) + COUNT(silver) + COUNT(quarantine) + COUNT(quarantine_now) > 0;
"""

TAKEN_VIEWS = f"""
CREATE TEMP VIEW refused AS SELECT * FROM quarantine WHERE is_now AND {_AT_BRONZE};
CREATE TEMP VIEW dropped_refused AS SELECT * FROM dropped WHERE {_AT_BRONZE};
CREATE TEMP VIEW sources AS SELECT topic || '/' || "partition" || '/' || "offset" AS id, is_before, is_now FROM source;

CREATE TEMP VIEW taken AS
SELECT {_ROW}, batch_id AS batch, TRUE AS bronze, {_UNIQUE} FROM bronze
UNION ALL BY NAME SELECT record_id AS id, batch_id AS batch, TRUE AS quarantine, {_UNIQUE} FROM refused
UNION ALL BY NAME SELECT record_id AS id, TRUE AS dropped, {_UNIQUE} FROM dropped_refused
UNION ALL BY NAME SELECT {_ROW}, batch_id AS batch, TRUE AS bronze, TRUE AS retired, {_UNIQUE} FROM retired
UNION ALL BY NAME SELECT {_ROW}, batch_id AS batch, TRUE AS forgotten, {_UNIQUE} FROM forgotten
UNION ALL BY NAME SELECT id, is_before AS before, is_now AS now FROM sources WHERE id IS NOT NULL;

CREATE TEMP VIEW takings AS
SELECT id, MAX(game) AS game, MIN(batch) AS batch, COALESCE(BOOL_OR(is_unique), FALSE) AS is_unique,
    {", ".join(f"COUNT({name}) AS {name}" for name in _columns(SourceLocations) if name != "is_unique")}
FROM taken GROUP BY id;

CREATE TEMP VIEW dropped_only AS SELECT * FROM {_not_in("dropped_refused", "refused", "record_id")};
CREATE TEMP VIEW removed_1 AS SELECT * FROM {_not_in("removed", "bronze", "record_id")};
CREATE TEMP VIEW removed_2 AS SELECT * FROM {_not_in("removed_1", "refused", "record_id")};
CREATE TEMP VIEW removed_only AS SELECT * FROM {_not_in("removed_2", "dropped_only", "record_id")};
CREATE TEMP VIEW records AS
SELECT {_POSITION} FROM bronze
UNION ALL SELECT {_POSITION} FROM refused
UNION ALL SELECT {_POSITION} FROM dropped_only
UNION ALL SELECT {_POSITION} FROM removed_only;

CREATE TEMP VIEW offsets AS
SELECT DISTINCT log, "partition", "offset"
FROM (SELECT *, REGEXP_EXTRACT(record_id, '^(.*)/[0-9]+/[0-9]+$', 1) AS log FROM records WHERE origin = 'kafka')
LEFT JOIN ends USING (log, "partition")
WHERE ended IS NULL OR "offset" < ended;
"""

NO_SOURCE = """
CREATE OR REPLACE TEMP VIEW source AS
SELECT '' AS topic, 0 AS "partition", 0 AS "offset", TRUE AS is_before, TRUE AS is_now WHERE FALSE
"""
# records whose table has no position: bronze gives them a number for an id
NUMBERED_IN_SOURCE = f"SELECT COUNT(*) FROM source WHERE is_before AND NOT {_HAS_POSITION}"
NUMBERED_TAKEN = f"SELECT COUNT(*) FROM records WHERE {_FROM_DELTA} AND NOT {_HAS_POSITION}"

# log, partition, first and last offset, how many there are
SEEN = 'SELECT log, "partition", MIN("offset"), MAX("offset"), COUNT("offset") FROM offsets GROUP BY ALL'
# by log and partition, the first ranges between offsets that are not there: first, end
INNER_HOLES = """
SELECT log, "partition", first, "offset"
FROM (SELECT *, LAG("offset") OVER (PARTITION BY log, "partition" ORDER BY "offset") + 1 AS first FROM offsets)
WHERE "offset" > first
QUALIFY ROW_NUMBER() OVER (PARTITION BY log, "partition" ORDER BY first) <= $most
"""
GAMES = "SELECT game_name FROM bronze UNION SELECT game_name FROM removed WHERE game_name IS NOT NULL"


def tallies_in(counted: Counted, grain: Grain) -> str:
    """Return the query of one row for all records in the same places.

    Its columns: game, those of `counted`, how many records, the first batch of bronze that has one, the last one.
    """
    keys = ", ".join(["game", *_columns(counted)])
    batch = "" if grain is Grain.GAME else ", batch"
    return f"SELECT {keys}, COUNT(*), MIN(batch), MAX(batch) FROM {_view(counted)} GROUP BY {keys}{batch}"


def examples_in(counted: Counted) -> str:
    """Return the query of the first `$most` records, of each kind and game, that are in places of the table `wrong`.

    Its columns: kind, game, id, batch. `wrong` has the columns of `counted`, game and kind.
    """
    same = " AND ".join(f"found.{name} IS NOT DISTINCT FROM wrong.{name}" for name in ("game", *_columns(counted)))
    return f"""
    SELECT kind, found.game, id, batch FROM {_view(counted)} AS found JOIN wrong ON {same}
    QUALIFY ROW_NUMBER() OVER (PARTITION BY kind, found.game ORDER BY batch NULLS LAST, id) <= $most
    """


def _view(counted: Counted) -> str:
    return "places" if counted is RecordLocations else "takings"

"""Tables in a store as the ledger reads them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from demux.core.columns.types import Column, Primitive, Struct
from demux.core.storage.files import Storage
from demux.core.storage.location import Scheme, locate
from demux.operations.reconcile.duckdb_engine import counting_engine, register, register_silver
from demux.operations.reconcile.table_snapshots import snapshot

NAMES = ("chess", "a/b", "a%20b", "a=b", "[b]*?", 'a"b', "x\ny", "🎲", "..", "a+b&c#d", None)
BRONZE = Struct((Column("game_name", Primitive.STRING), Column("_record_id", Primitive.STRING)))


def test_partitions_of_any_name_are_read_and_silver_tables_are_one(in_store: Storage, tmp_path: Path) -> None:
    path = f"s3://demux/{tmp_path.name}/games 100%+ü"
    rows = pa.table({"game_name": NAMES, "_record_id": [str(number) for number in range(len(NAMES))]})
    options = in_store.access.table_options(Scheme.S3)
    write_deltalake(locate(path).url, rows, partition_by="game_name", storage_options=options)
    found = snapshot(None, in_store, path, BRONZE)
    assert snapshot(None, in_store, f"{path}/none", BRONZE).version == -1
    with counting_engine() as engine:
        register(engine, None, "bronze", found)
        register(engine, None, "chosen", found, ("game_name", ["a/b", "a%20b"]))
        register_silver(engine, in_store, None, {"one": found, "other": found}, {"other": "The Other"})
        assert dict(engine.execute("FROM bronze").fetchall()) == dict(
            zip(NAMES, map(str, range(len(NAMES))), strict=True)
        )
        assert sorted(engine.execute("FROM chosen").fetchall()) == [("a%20b", "2"), ("a/b", "1")]
        counts = engine.execute("SELECT game, COUNT(_record_id) FROM silver GROUP BY game").fetchall()
        assert sorted(counts) == [("The Other", len(NAMES)), ("one", len(NAMES))]

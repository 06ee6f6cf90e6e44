"""A root with somebody in every place, and whether anything of them is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from deltalake import DeltaTable

from demux import api
from demux.operations.reconcile.balance import Ledger
from tests.support.flow.root import Root, wrapper

ANN = "ann o'neil"
BOB = "bob"
# SQL, a path and a pattern at once
HOSTILE = "x' OR '1'='1`; %_../"
EVENT = """
    syntax = "proto3";
    package test;
    message Event { string name = 1; int64 score = 2; Player player = 3; repeated string tags = 4; }
    message Player { string name = 1; int32 level = 2; }
"""


def quoted(text: str) -> str:
    """Return the text as a literal of a predicate."""
    return "'" + text.replace("'", "''") + "'"


WHERE = f"player.name = {quoted(ANN)}"


def send_everybody(root: Root, game: str) -> int:
    """Send records of a game, some of ann in each place, and return the id of their schema."""
    schema_id = root.register(game, EVENT)
    root.send(everybody(root, game, schema_id))
    return schema_id


def everybody(root: Root, game: str, schema_id: int) -> list[bytes | None]:
    """Eight records: 0 ann, 1 bob, 2 ann and 3 bob cut off behind the name, 4 ann cut off in it, and 7 bob.

    5 is ann in an unknown schema, 6 ann without a wrapper.
    """
    ann, bob = payload(root, schema_id, ANN), payload(root, schema_id, BOB)
    return [
        wrapper(game, schema_id, ann),
        wrapper(game, schema_id, bob),
        wrapper(game, schema_id, ann[:-1]),
        wrapper(game, schema_id, bob[:-1]),
        wrapper(game, schema_id, payload(root, schema_id, ANN, before="")[: len(ANN) + 3]),
        wrapper(game, 999, ann),
        b"\xff" + ANN.encode(),
        wrapper(game, schema_id, bob),
    ]


def payload(root: Root, schema_id: int, name: str, before: str = "x") -> bytes:
    """Return a payload with somebody inside a message, and something behind."""
    message: Any = root.message(schema_id)
    found: bytes = message(name=before, player={"name": name, "level": 3}, tags=["t"]).SerializeToString()
    return found


def balanced(root: Root, where: object = "") -> Ledger:
    ledger = api.Root(root.settings).reconcile()
    assert (ledger.differences, ledger.notes) == ((), ()), where
    return ledger


def tables(root: Root) -> list[Path]:
    return [root.folder / "bronze", root.folder / "quarantine", *sorted((root.folder / "silver").glob("*"))]


def live_files(root: Root) -> Iterator[Path]:
    """Yield the data files that the tables have now."""
    for table in tables(root):
        yield from (Path(uri.removeprefix("file://")) for uri in DeltaTable(table).file_uris())


def all_files(root: Root) -> Iterator[Path]:
    """Yield all data files below the tables' folders."""
    for table in tables(root):
        yield from (file for file in table.rglob("*.parquet") if "_delta_log" not in file.parts)


def holding(files: Iterable[Path], text: str) -> list[str]:
    """Return which files have the text in their bytes or, as they may be compressed, in one of their values."""
    wanted = text.encode()
    return sorted(file.name for file in files if wanted in file.read_bytes() or _has(pq.read_table(file), wanted))


def _has(rows: Any, wanted: bytes) -> bool:
    return any(_in(value, wanted) for row in rows.to_pylist() for value in row.values())


def _in(value: Any, wanted: bytes) -> bool:
    match value:
        case bytes():
            return wanted in value
        case str():
            return wanted in value.encode()
        case dict():
            return any(_in(one, wanted) for one in value.values())
        case list() | tuple():
            return any(_in(one, wanted) for one in value)
        case _:
            return False

"""Somebody is forgotten: in no table and no live file, while streams go on and the ledger balances."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.flow.fleet import run
from tests.flow.forgetting import (
    ANN,
    BOB,
    WHERE,
    holding,
    live_files,
    send_everybody,
)
from tests.flow.process import Command, Said
from tests.flow.root import Root

Copy = Callable[..., Root]
Forget = Callable[..., Said]


@pytest.fixture
def forget(command: Command) -> Forget:
    """Runs `demux forget` on a root, with its engine."""

    def once(root: Root, *words: str, where: str = WHERE) -> Said:
        engine = f"run.engine={root.settings.run.engine.value if root.settings.run.engine else 'fleet'}"
        return command("forget", "--where", where, "--root", str(root.folder), "--set", engine, *words)

    return once


def names(root: Root, game: str) -> list[str]:
    return [row["player"]["name"] for row in root.silver(game)]


@pytest.mark.parametrize("engine", ["stream", "fleet"])
def test_somebody_is_in_no_table_and_no_live_file_and_the_stream_goes_on(
    root: Root, forget: Forget, engine: str
) -> None:
    root = Root.at(root.spark, root.folder, run={"engine": engine, "retry_wait_s": 0.0})
    schema_id = send_everybody(root)
    place = root.workplace()
    run(root, place)
    assert names(root, "chess") == [ANN, BOB, BOB]
    assert len(holding(live_files(root), ANN)) > 3
    first = forget(root, "--yes")
    print(first.out, first.err)
    assert first.code == 7

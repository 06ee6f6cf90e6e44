"""Rows per second from bronze to silver: the fleet, streams by both decoders, and the bare loop, on the same events."""

from __future__ import annotations

import statistics
from pathlib import Path

from benchmarks.parts.decoding import timed
from benchmarks.parts.oldest import speed_there
from benchmarks.support.bare import BareLoop, processes
from benchmarks.support.roots import PARALLELISM, Bench
from benchmarks.support.sizes import Sizes
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.folder import FolderRegistry
from demux.core.settings.settings import Decoder, Engine
from producer.schemas import games as first_games

TITLE = "Rows per second, bronze to silver"

FLEET, BARE = "`engine: fleet`", "the bare loop: Parquet, `ptars`, append by `deltalake`"
ARROW, NATIVE = "`engine: stream`, decoder `arrow`", "`engine: stream`, decoder `from_protobuf`, oldest lane"


def run(bench: Bench, sizes: Sizes) -> list[str]:
    """Return the section's lines."""
    there = speed_there(sizes.games, sizes.total // sizes.games, sizes.versions, sizes.warm + sizes.repeats)
    print(f"oldest lane: {there} s", flush=True)
    seconds = measured(bench, sizes)
    if there is not None:
        seconds[NATIVE] = there[sizes.warm :]
    return lines({name: sizes.total / statistics.median(each) for name, each in seconds.items()})


def measured(bench: Bench, sizes: Sizes) -> dict[str, list[float]]:
    """Return the seconds of decoding of each round that counts, by what decoded."""
    events = bench.events(sizes.games, sizes.total // sizes.games, sizes.versions)
    assert events.rows == sizes.total, "every game has the same"
    fleet, streams = bench.root("fast-fleet"), bench.root("fast-streams", Engine.STREAM, Decoder.ARROW)
    registry = FolderRegistry(bench.folder / "registry")
    names = [game.name for game in first_games(sizes.games)]
    schemas = {name: compile_schema(registry.versions(name)[sizes.versions - 1]) for name in names}
    found: dict[str, list[float]] = {FLEET: [], ARROW: [], BARE: []}
    with processes(PARALLELISM) as pool:
        loop = BareLoop(fleet.layout.bronze, Path(fleet.settings.root, "bare"), schemas, pool)
        for number in range(sizes.warm + sizes.repeats):
            for root in (fleet, streams):
                root.send(events)
            found[FLEET].append(fleet.round().silver)
            found[ARROW].append(streams.round().silver)
            found[BARE].append(timed(loop.take))
            assert loop.rows == (number + 1) * sizes.total
            print(f"round {number}: { {name: round(each[-1], 2) for name, each in found.items()} } s", flush=True)
    bench.forget_events()
    for name in ("fast-fleet", "fast-streams"):
        bench.forget(name)
    return {name: each[sizes.warm :] for name, each in found.items()}


def lines(speeds: dict[str, float]) -> list[str]:
    """Return the speeds as Markdown."""
    fleet = speeds[FLEET]
    bars = {NATIVE: "3 at least", BARE: "0.5 at least"}
    rows = [
        f"| {name} | {speeds[name]:,.0f} | {fleet / speeds[name]:.2f} | {bars.get(name, '')} |"
        for name in (FLEET, ARROW, NATIVE, BARE)
        if name in speeds
    ]
    left_out = [] if NATIVE in speeds else ["Without `from_protobuf`: the oldest lane is not installed (`make setup`)."]
    return [
        "| decoding, all games together | rows per second | fleet / this | bar |",
        "| --- | ---: | ---: | ---: |",
        *rows,
        "",
        *left_out,
        f"Each on {PARALLELISM} cores. The bare loop reads all rows of a game by its newest schema, checks no payload, "
        "and writes no columns about where a row came from.",
    ]


def details(sizes: Sizes) -> str:
    """Return what was measured, as part of a sentence."""
    return (
        f"{sizes.total:,} rows of {sizes.games} games in {sizes.versions} schema versions, medians of {sizes.repeats} "
        f"rounds after {sizes.warm}"
    )

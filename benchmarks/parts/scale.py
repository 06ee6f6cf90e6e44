"""A thousand games: what idle ones begin (counted), what a few active ones cost beside them, and what all cost.

And what grows with what: rounds against games, rows, files and versions, decoding against columns.
"""

from __future__ import annotations

import io
import json
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from benchmarks.parts.decoding import timed
from benchmarks.support.counted import Count, children_mib, counted, tree_cpu_s
from benchmarks.support.events import Events
from benchmarks.support.roots import Bench, BenchRoot, Spent
from benchmarks.support.sizes import Sizes
from demux.core.protobuf.decode.decoder import decoder_of
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.protobuf.wire.wire_fields import varint
from demux.core.registry.protocol import RegisteredSchema

IDLE_TITLE = "Idle games"
FEW_TITLE = "Many games, few of them active"
ALL_TITLE = "Many games, all of them active"
GROWTH_TITLE = "What grows with what"
POINTS_TITLE = "Rounds that the formula of sizing is checked against"


@dataclass(frozen=True, slots=True)
class Begun:
    """What a round began: Spark jobs and queries of its decoding, commits to silver and quarantine in all of it."""

    active: int
    jobs: int
    queries: int
    commits: int


@dataclass(frozen=True, slots=True)
class Grown:
    """What a round cost at one size: seconds, seconds of CPU, and MiB of the JVM and its workers after it."""

    size: int
    seconds: float
    cpu_s: float | None = None
    mib: float | None = None


def idle(bench: Bench, sizes: Sizes) -> list[str]:
    """Return what rounds begin in which nobody, or hardly anybody, has new rows."""
    root = grown(bench, sizes.most, sizes)
    few = bench.events(sizes.active, sizes.rows)
    # warm: the first round of a few has nothing to learn any more
    _spent(root, few)
    found = [begun(root, None), begun(root, few), begun(root, None)]
    names = ["nobody has new rows", f"{sizes.active} games have", "nobody has, again"]
    return [
        f"| a round over {sizes.most:,} games | Spark jobs | streaming queries | commits to silver and quarantine |",
        "| --- | ---: | ---: | ---: |",
        *(f"| {name} | {one.jobs} | {one.queries} | {one.commits} |" for name, one in zip(names, found, strict=True)),
        "",
        "Jobs and queries are those of the engine; bronze, which all games share, has its own.",
    ]


def few_active(bench: Bench, sizes: Sizes) -> list[str]:
    """Return what a round with a few active games costs among many, against a root with only those."""
    most, alone = grown(bench, sizes.most, sizes), grown(bench, sizes.active, sizes)
    few = bench.events(sizes.active, sizes.rows)
    here, there = _in_turn([(most, few), (alone, few)], sizes)
    return [
        f"| {sizes.active} games with {sizes.rows:,} new rows each | bronze, s | decoding, s | plan and control "
        "tables, s | whole round, s |",
        "| --- | ---: | ---: | ---: | ---: |",
        _row(f"among {sizes.most:,} games", here),
        _row("no other games", there),
        _ratios(here, there),
        "",
        "Bar: the whole round at most 3 times as long.",
    ]


def all_active(bench: Bench, sizes: Sizes) -> list[str]:
    """Return what a game costs where many, and where fewer, are all active."""
    most, fewer = grown(bench, sizes.most, sizes), grown(bench, sizes.fewer, sizes)
    works = [(most, bench.events(sizes.most, sizes.few_rows)), (fewer, bench.events(sizes.fewer, sizes.few_rows))]
    here, there = _in_turn(works, sizes)
    per_game = [_median(here, "silver") / sizes.most, _median(there, "silver") / sizes.fewer]
    whole = [_median(here, "round") / sizes.most, _median(there, "round") / sizes.fewer]
    return [
        f"| all active, {sizes.few_rows:,} new rows each | decoding, s a round | decoding, s per game | whole round, s "
        "per game |",
        "| --- | ---: | ---: | ---: |",
        f"| {sizes.most:,} games | {_median(here, 'silver'):.2f} | {per_game[0]:.4f} | {whole[0]:.4f} |",
        f"| {sizes.fewer:,} games | {_median(there, 'silver'):.2f} | {per_game[1]:.4f} | {whole[1]:.4f} |",
        f"| ratio | | {per_game[0] / per_game[1]:.2f} | {whole[0] / whole[1]:.2f} |",
        "",
        "Bar: seconds per game at most 1.3 times those of the smaller fleet.",
    ]


def growth(bench: Bench, sizes: Sizes) -> list[str]:
    """Return the costs against games, active games, rows, files, versions and columns, with fitted exponents."""
    lines = [
        "| what grows | at | seconds | exponent | seconds of CPU | exponent | MiB |",
        "| --- | --- | --- | ---: | --- | ---: | --- |",
    ]
    _warm_up(bench, sizes)
    for name, measured in _DIMENSIONS.items():
        found = list(measured(bench, sizes))
        lines.append(growth_line(name, found))
        print(lines[-1], flush=True)
    return [
        *lines,
        "",
        "Exponents by least squares of the logarithms. Seconds, also of CPU, and MiB (the JVM and its workers) are of "
        f"a round. Games: {sizes.active} of them active with {sizes.rows:,} rows; active games: {sizes.few_rows} rows "
        f"each; rows: of {sizes.games} games together; files, versions: in bronze's log, in the first round of a "
        f"process, {sizes.active} active games. Columns, bytes: {_PAYLOADS:,} payloads are written, read and decoded, "
        "and their columns written, in one thread. The machine was shared: seconds vary more than those of CPU.",
    ]


def growth_line(name: str, found: Sequence[Grown]) -> str:
    """Return a line of the table."""
    sizes, seconds = [one.size for one in found], [one.seconds for one in found]
    cpu = [one.cpu_s for one in found if one.cpu_s is not None]
    return (
        f"| {name} | {' / '.join(f'{size:,}' for size in sizes)} | {' / '.join(f'{one:.2f}' for one in seconds)} | "
        f"{exponent(sizes, seconds):.2f} | {' / '.join(f'{one:.2f}' for one in cpu)} | "
        f"{f'{exponent(sizes, cpu):.2f}' if cpu else ''} | "
        f"{' / '.join(f'{one.mib:,.0f}' for one in found if one.mib is not None)} |"
    )


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return by which power of the size the cost grows: least squares of the logarithms."""
    return float(np.polyfit([log(size) for size in sizes], [log(cost) for cost in costs], 1)[0])


def points(bench: Bench, sizes: Sizes) -> list[str]:
    """Return whole rounds of other games and rows than those of `growth`: CPU, memory, files and bytes of each."""
    lines = [
        "| games | active | rows of each | seconds | seconds of CPU | MiB | data files | commits | bytes |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    _warm_up(bench, sizes)
    for games, active, rows in _POINTS:
        root = grown(bench, games, sizes)
        _spent(root, bench.events(active, rows))
        before = _on_disk(root)
        found = _whole_rounds(root, active, bench.events(active, rows), sizes)
        rounds = sizes.repeats
        files, commits, size = ((after - old) / rounds for after, old in zip(_on_disk(root), before, strict=True))
        lines.append(
            f"| {games:,} | {active:,} | {rows:,} | {found.seconds:.2f} | {found.cpu_s:.2f} | {found.mib:,.0f} | "
            f"{files:,.0f} | {commits:,.0f} | {size:,.0f} |"
        )
        print(lines[-1], flush=True)
        bench.forget_events()
        bench.forget(f"of-{games}")
    payload = _payload_bytes(bench)
    return [
        *lines,
        "",
        f"A wrapped record has {payload:.0f} bytes. Files, commits and bytes are those that a round adds.",
    ]


def details(sizes: Sizes) -> str:
    """Return what was measured, as part of a sentence."""
    return f"one schema version, medians of {sizes.repeats} rounds after {sizes.warm}"


def grown(bench: Bench, games: int, sizes: Sizes) -> BenchRoot:
    """Return a root where this many games have had rows before."""
    root = bench.root(f"of-{games}")
    if not root.silver():
        spent = _spent(root, bench.events(games, sizes.few_rows))
        print(
            f"{spent.round:8.1f} s  the first round of {games} games, {spent.silver:.1f} s of it decoding", flush=True
        )
    return root


def begun(root: BenchRoot, events: Events | None) -> Begun:
    """Return what a round begins."""
    if events is not None:
        root.send(events)
    count, before = Count(), root.commits()
    spent = root.round(lambda: counted(root.spark, count))
    return Begun(spent.games, count.jobs, count.queries, root.commits() - before)


def _in_turn(works: list[tuple[BenchRoot, Events]], sizes: Sizes) -> list[list[Spent]]:
    found: list[list[Spent]] = [[] for _ in works]
    for number in range(sizes.warm + sizes.repeats):
        for (root, events), mine in zip(works, found, strict=True):
            mine.append(_spent(root, events))
        print(f"round {number}: {[f'{mine[-1].silver:.2f}' for mine in found]} s of decoding", flush=True)
    return [mine[sizes.warm :] for mine in found]


def _spent(root: BenchRoot, events: Events) -> Spent:
    root.send(events)
    return root.round()


def _median(spent: list[Spent], what: str) -> float:
    return float(statistics.median(getattr(each, what) for each in spent))


def _row(name: str, spent: list[Spent]) -> str:
    figures = (_median(spent, what) for what in ("bronze", "silver", "rest", "round"))
    return f"| {name} | {' | '.join(f'{figure:.2f}' for figure in figures)} |"


def _ratios(here: list[Spent], there: list[Spent]) -> str:
    pairs = ((_median(here, what), _median(there, what)) for what in ("bronze", "silver", "rest", "round"))
    return f"| ratio | {' | '.join(f'{mine / other:.2f}' for mine, other in pairs)} |"


def _warm_up(bench: Bench, sizes: Sizes) -> None:
    """Run rounds until the JVM has compiled what they use; else the first size is the dearest."""
    root, few = grown(bench, sizes.active, sizes), bench.events(sizes.active, sizes.rows)
    for _ in range(3 * sizes.warm):
        _spent(root, few)


def _whole_rounds(root: BenchRoot, size: int, events: Events, sizes: Sizes, fresh: bool = False) -> Grown:
    """Return medians of rounds; `fresh`: each is the first of a process, which knows nothing of the root."""
    found: list[tuple[float, float]] = []
    for _ in range(sizes.repeats):
        if fresh:
            registry = Path(root.settings.registry_path)
            root = BenchRoot(root.spark, root.settings.root, registry, root.settings.round_engine)
        root.send(events)
        before = tree_cpu_s(os.getpid())
        spent = root.round()
        found.append((spent.round, tree_cpu_s(os.getpid()) - before))
    seconds, cpu = (statistics.median(column) for column in zip(*found, strict=True))
    print(f"{size:,}: {seconds:.2f} s, {cpu:.2f} s of CPU", flush=True)
    return Grown(size, seconds, cpu, children_mib())


def _against_games(bench: Bench, sizes: Sizes) -> Iterator[Grown]:
    root, few = bench.root("growth"), bench.events(sizes.active, sizes.rows)
    for games in _thirds(sizes.most):
        # what is new of them are games that it had not
        _spent(root, bench.events(games, sizes.few_rows))
        _spent(root, few)
        yield _whole_rounds(root, games, few, sizes)


def _against_active(bench: Bench, sizes: Sizes) -> Iterator[Grown]:
    root = bench.root("growth")
    for games in _thirds(sizes.most):
        yield _whole_rounds(root, games, bench.events(games, sizes.few_rows), sizes)
    bench.forget("growth")
    bench.forget_events()


def _against_rows(bench: Bench, sizes: Sizes) -> Iterator[Grown]:
    root = bench.root("growth-rows")
    for rows in _thirds(sizes.total // sizes.games // 4, 10):
        events = bench.events(sizes.games, rows)
        _spent(root, events)
        yield _whole_rounds(root, events.rows, events, sizes)
        bench.forget_events()
    bench.forget("growth-rows")


def _against_files(bench: Bench, sizes: Sizes) -> Iterator[Grown]:
    root, few = grown(bench, sizes.active, sizes), bench.events(sizes.active, sizes.rows)
    here = 0
    for files in _thirds(sizes.most * 100, 10):
        # as compaction commits them: nobody reads them
        adds = [_added_file(number) for number in range(here, files)]
        here = files
        _commit(root, [adds])
        yield _whole_rounds(root, files, few, sizes, fresh=True)
    bench.forget(f"of-{sizes.active}")


def _against_versions(bench: Bench, sizes: Sizes) -> Iterator[Grown]:
    root, few = grown(bench, sizes.active, sizes), bench.events(sizes.active, sizes.rows)
    for versions in _thirds(sizes.most * 10, 10):
        table = DeltaTable(root.layout.bronze)
        _commit(root, [[]] * (versions - table.version()))
        DeltaTable(root.layout.bronze).create_checkpoint()
        yield _whole_rounds(root, versions, few, sizes, fresh=True)
    bench.forget(f"of-{sizes.active}")


def _against_columns(bench: Bench, sizes: Sizes) -> Iterator[Grown]:
    for columns in _thirds(sizes.most, 10):
        fields = "".join(f"int32 f{number} = {number};" for number in range(1, columns + 1))
        payload = b"".join(varint(number << 3) + b"\x01" for number in range(1, columns + 1))
        yield _through_files(columns, fields, [payload] * _PAYLOADS, sizes)


def _against_bytes(bench: Bench, sizes: Sizes) -> Iterator[Grown]:
    for size in _thirds(sizes.most * 10, 10):
        texts = [random.Random(number).randbytes((size + 1) // 2).hex().encode() for number in range(_PAYLOADS)]
        payloads = [b"\x0a" + varint(len(text)) + text for text in texts]
        yield _through_files(size, "string text = 1;", payloads, sizes)


def _through_files(size: int, fields: str, payloads: list[bytes], sizes: Sizes) -> Grown:
    """Return what payloads cost in one thread that writes, reads and decodes them, and writes the columns."""
    text = f'syntax = "proto3"; message Wide {{ {fields} }}'
    schema = compile_schema(RegisteredSchema(1, "wide", 1, text, "wide.proto"))
    decoder = decoder_of(schema.descriptor_set, schema.message)
    given = pa.table({"payload": pa.array(payloads, pa.binary())})

    def work() -> None:
        bronze, silver = io.BytesIO(), io.BytesIO()
        pq.write_table(given, bronze)
        decoded = decoder.decode(pq.read_table(bronze)["payload"].combine_chunks())
        assert not decoded.bad
        pq.write_table(pa.table(decoded.columns, [str(at) for at in range(len(decoded.columns))]), silver)

    spent: list[tuple[float, float]] = []
    for _ in range(1 + sizes.repeats):
        before = time.process_time()
        spent.append((timed(work), time.process_time() - before))
    seconds, cpu = (statistics.median(column) for column in zip(*spent[1:], strict=True))
    return Grown(size, seconds, cpu)


_DIMENSIONS: dict[str, Callable[[Bench, Sizes], Iterator[Grown]]] = {
    "games": _against_games,
    "active games": _against_active,
    "rows": _against_rows,
    "files of bronze": _against_files,
    "versions of bronze's log": _against_versions,
    "columns": _against_columns,
    "bytes of a payload": _against_bytes,
}
_PAYLOADS = 5_000
# games, active ones, rows of each
_POINTS = ((20, 20, 20_000), (200, 200, 1_000), (400, 100, 300))


def _thirds(last: int, step: int = 4) -> tuple[int, int, int]:
    return max(1, last // step**2), max(1, last // step), last


def _added_file(number: int) -> str:
    add = {
        "path": f"game_name=none/part-{number}.parquet",
        "partitionValues": {"game_name": "none"},
        "size": 10_000,
        "modificationTime": 0,
        "dataChange": False,
        "stats": '{"numRecords": 1}',
    }
    return json.dumps({"add": add})


def _commit(root: BenchRoot, commits: Sequence[Sequence[str]]) -> None:
    folder, version = Path(root.layout.bronze, "_delta_log"), DeltaTable(root.layout.bronze).version()
    for number, actions in enumerate(commits, version + 1):
        lines = [json.dumps({"commitInfo": {"operation": "OPTIMIZE"}}), *actions]
        (folder / f"{number:020}.json").write_text("\n".join(lines) + "\n", "utf-8")


def _on_disk(root: BenchRoot) -> tuple[int, int, int]:
    """Return how many data files and commits all tables but the source have, and the bytes of bronze and silver."""
    tables = [path for path in Path(root.settings.root).iterdir() if path.name not in ("source", "registry")]
    files = [path for table in tables for path in table.rglob("*.parquet") if "_delta_log" not in path.parts]
    commits = sum(1 for table in tables for _ in table.rglob("_delta_log/*.json"))
    return len(files), commits, sum(path.stat().st_size for path in files)


def _payload_bytes(bench: Bench) -> float:
    values = [value for batch in bench.events(20, 100).batches for value in batch.values]
    return sum(len(value or b"") for value in values) / len(values)

"""Rounds of the same events on roots in turn: on the disk, and in a store that answers at once or late."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

from benchmarks.stores.bars import Bar
from benchmarks.support.points import DISK, SLOW, STORE, Point
from benchmarks.support.roots import PARALLELISM, Bench, BenchRoot, Spent, Watch
from benchmarks.support.sizes import Sizes
from demux.core.settings.settings import Sink
from demux.core.settings.store import StoreSettings
from tools.servers.process import cpu_s
from tools.servers.stores.proxy import Request
from tools.servers.stores.s3 import ObjectStore
from tools.servers.stores.slow import SlowStore

LATENCY_S = 0.03
_BRONZE_LATENCY_S = 0.02
_FEW_ROWS = 20
# of each game of a large fleet
_SPARK_ROUNDS = 2
_KINDS = ("HEAD", "GET", "ranged GET", "LIST", "PUT", "conditional PUT", "DELETE", "POST")


@dataclass
class Found:
    """The measurements.

    Attributes:
        bars: figures.
        points: seconds of decoding.
        rounds: seconds of whole rounds, in lines of a table.
        requests: in lines of a table.
    """

    bars: list[Bar] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    rounds: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


def at_once(bench: Bench, sizes: Sizes, store: StoreSettings, server: ObjectStore, found: Found) -> Iterator[None]:
    """Measure decoding in a store that answers at once, and Spark's own writer there; yields after each figure.

    The server computes on the same cores as the product, so its part is shown too.
    """
    for games in (sizes.games, sizes.fewer, sizes.many):
        roots = {DISK: bench.root(f"disk{games}"), STORE: bench.root_in(f"s3://demux/bench{games}", store)}
        served: list[float] = []
        spent = rounds(bench, roots, games, sizes, watch={STORE: partial(_cpu_of, server.pid, served)})
        bench.forget(f"disk{games}")
        found.bars.append(_decoding(games, sizes, spent, STORE, 1.3, "store / disk"))
        found.bars.append(_without_server(games, sizes, spent, statistics.median(served[sizes.warm :])))
        found.points += [Point("stores", one, games, sizes.rows, _silver(each)) for one, each in spent.items()]
        found.rounds += [_round(one, games, each) for one, each in spent.items()]
        yield
        if games == sizes.games:
            by_spark = {Sink.SPARK.value: bench.root_in("s3://demux/spark", store, Sink.SPARK)}
            few = Sizes(rows=sizes.rows, versions=sizes.versions, warm=1, repeats=_SPARK_ROUNDS - 1)
            spark, ours = _silver(rounds(bench, by_spark, games, few)[Sink.SPARK.value]), _silver(spent[STORE])
            figures = f"{spark:.1f} s / {ours:.2f} s"
            found.bars.append(
                Bar(f"decoding in a store, {games} games, `run.sink: spark` / ours", figures, spark / ours)
            )


def late(bench: Bench, sizes: Sizes, store: StoreSettings, slow: SlowStore, found: Found) -> Iterator[None]:
    """Measure decoding and bronze in a store that answers late, and what is asked of it; yields after each size."""
    for games in (sizes.games, sizes.fewer, sizes.many):
        roots = {DISK: bench.root(f"disk{games}"), SLOW: bench.root_in(f"s3://demux/late{games}", store)}
        spent = rounds(bench, roots, games, sizes, lambda name: slow.wait(LATENCY_S if name == SLOW else 0))
        bench.forget(f"disk{games}")
        bar = 2.5 if games == sizes.many else None
        found.bars.append(_decoding(games, sizes, spent, SLOW, bar, f"{1000 * LATENCY_S:g} ms on each request / disk"))
        found.points.append(Point("stores", SLOW, games, sizes.rows, _silver(spent[SLOW])))
        found.rounds.append(_round(SLOW, games, spent[SLOW]))
        if games == sizes.fewer:
            found.bars.append(_bronze(bench, roots[SLOW], games, sizes, slow))
        if games == sizes.games:
            _asked(bench, roots[SLOW], games, sizes, slow, found)
        slow.wait(0)
        yield


def large(bench: Bench, sizes: Sizes, store: StoreSettings, slow: SlowStore, found: Found) -> None:
    """Count the requests of a round of few active games, with and without many idle ones."""
    asked: dict[int, Counter[str]] = {}
    for games in (sizes.active, sizes.most):
        root, events = bench.root_in(f"s3://demux/large{games}", store), bench.events(games, _FEW_ROWS)
        some = events.of_first(sizes.active)
        for sent in (events, some, some):
            root.send(sent)
            slow.asked()
            spent = root.round()
            asked[games] = Counter(request.kind for request in slow.asked())
        assert spent.games == sizes.active
        found.requests.append(_kinds(f"a round, {sizes.active} active of {games:,}", asked[games]))
    most, least = (sum(asked[games].values()) for games in (sizes.most, sizes.active))
    found.bars.append(
        Bar(
            f"requests of a round, {sizes.active} active games of {sizes.most:,} / no others",
            f"{most} / {least}",
            most / least,
            most=3,
        )
    )


def rounds(
    bench: Bench,
    roots: Mapping[str, BenchRoot],
    games: int,
    sizes: Sizes,
    before: Callable[[str], object] = lambda _: None,
    watch: Mapping[str, Watch] = MappingProxyType({}),
) -> dict[str, list[Spent]]:
    """Return what each round cost that counts, by root.

    `before` is called before each, with the root's name; `watch` is entered around the decoding of some roots.
    """
    events = bench.events(games, sizes.rows, sizes.versions)
    spent: defaultdict[str, list[Spent]] = defaultdict(list)
    for number in range(sizes.warm + sizes.repeats):
        for name, root in roots.items():
            root.send(events)
            before(name)
            spent[name].append(root.round(watch.get(name, nullcontext)))
        last = {name: f"{each[-1].bronze:.2f} + {each[-1].silver:.2f}" for name, each in spent.items()}
        print(f"{games} games, round {number}: bronze + decoding {last} s", flush=True)
    return {name: each[sizes.warm :] for name, each in spent.items()}


def round_lines(found: Found) -> list[str]:
    """Return the table of whole rounds."""
    return [
        "| root | games | bronze, s | decoding, s | plan and control tables, s |",
        "| --- | ---: | ---: | ---: | ---: |",
        *found.rounds,
    ]


def request_lines(found: Found) -> list[str]:
    """Return the table of requests."""
    return [f"| requests | {' | '.join(_KINDS)} |", f"| --- |{' ---: |' * len(_KINDS)}", *found.requests]


def _asked(bench: Bench, root: BenchRoot, games: int, sizes: Sizes, slow: SlowStore, found: Found) -> None:
    decoding: list[Request] = []

    @contextmanager
    def watch() -> Iterator[None]:
        found_before = slow.asked()
        yield
        decoding.extend(slow.asked())
        everything.extend([*found_before, *decoding])

    everything: list[Request] = []
    root.send(bench.events(games, sizes.rows, sizes.versions))
    slow.asked()
    root.round(watch)
    everything.extend(slow.asked())
    silver, kept = _by_upkeep(decoding)
    found.requests += [
        _kinds("a game's table", *silver),
        _kinds("a game's table that is kept small, each 16th round", *kept),
        _kinds(f"decoding, {games} games", Counter(request.kind for request in decoding)),
        _kinds(f"a round, {games} games", Counter(request.kind for request in everything)),
    ]
    tables, count = silver
    each = sum(tables.values()) / count
    found.bars.append(Bar("requests for an active game's table", f"of {games} games", each, most=4))


def _by_upkeep(requests: Iterable[Request]) -> tuple[tuple[Counter[str], int], tuple[Counter[str], int]]:
    """Return the requests of silver tables by kind and how many tables: those only written, and those kept small."""
    tables: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for request in requests:
        _, found, rest = request.path.partition("/silver/")
        if found:
            tables[rest.partition("/")[0]][request.kind] += 1
    # upkeep lists the log
    kept = [asked for asked in tables.values() if asked["LIST"]]
    written = [asked for asked in tables.values() if not asked["LIST"]]
    return (sum(written, Counter()), len(written)), (sum(kept, Counter()), len(kept))


def _bronze(bench: Bench, root: BenchRoot, games: int, sizes: Sizes, slow: SlowStore) -> Bar:
    late = rounds(bench, {SLOW: root}, games, sizes, lambda _: slow.wait(_BRONZE_LATENCY_S))[SLOW]
    seconds = [one.bronze for one in late]
    return Bar(
        f"a batch of bronze, {games} games, {1000 * _BRONZE_LATENCY_S:g} ms on each request",
        f"{min(seconds):.1f} to {max(seconds):.1f} s",
        statistics.median(seconds),
        most=4,
        unit=" s",
    )


def _decoding(
    games: int, sizes: Sizes, spent: Mapping[str, Sequence[Spent]], name: str, bar: float | None, what: str
) -> Bar:
    disk, other = _silver(spent[DISK]), _silver(spent[name])
    figures = f"{other:.2f} s / {disk:.2f} s"
    return Bar(f"decoding, {games} games x {sizes.rows:,} rows, {what}", figures, other / disk, most=bar)


def _without_server(games: int, sizes: Sizes, spent: Mapping[str, Sequence[Spent]], cpu_s: float) -> Bar:
    """Return the ratio as it is where the server has cores of its own; all of them are busy while games decode."""
    disk, store = _silver(spent[DISK]), _silver(spent[STORE]) - cpu_s / PARALLELISM
    figures = f"{cpu_s:.2f} s of CPU on {PARALLELISM} cores"
    return Bar(f"the same, {games} games x {sizes.rows:,} rows, without the server's own part", figures, store / disk)


@contextmanager
def _cpu_of(pid: int, seconds: list[float]) -> Iterator[None]:
    """Append how long a process computed meanwhile."""
    before = cpu_s(pid)
    yield
    seconds.append(cpu_s(pid) - before)


def _silver(spent: Sequence[Spent]) -> float:
    return round(statistics.median(one.silver for one in spent), 4)


def _round(name: str, games: int, spent: Sequence[Spent]) -> str:
    parts = (statistics.median(getattr(one, part) for one in spent) for part in ("bronze", "silver", "rest"))
    return f"| {name} | {games} | {' | '.join(f'{seconds:.2f}' for seconds in parts)} |"


def _kinds(what: str, asked: Counter[str], divided_by: int = 1) -> str:
    return f"| {what} | {' | '.join(f'{asked[kind] / divided_by:g}' for kind in _KINDS)} |"

"""`demux size`: what a load needs in a day, by the formula of docs/sizing.md; reads no root and starts nothing."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from demux.cli.command import console
from demux.cli.output.documents.plans import SizeJson
from demux.cli.output.print_json import print_json
from demux.cli.output.tables import new_table
from demux.core.text import count_text, duration_text
from demux.core.time_expressions import seconds_of
from install_workflow.planning.sizing import (
    BUSY,
    DAY_S,
    SHORTEST_ROUND_S,
    SizedLoad,
    SizeEstimate,
    estimate_size,
    rows_per_day_of,
)

_GIB = 2**30


def size(
    games: int, rows: str, active: int | None, every: str, bytes_per_record: int, columns: int, json: bool
) -> None:
    """Print cores, memory, requests, files and bytes that a load needs in a day, and what was assumed."""
    mine = games if active is None else active
    load = SizedLoad(games, rows_per_day_of(rows), mine, seconds_of(every), bytes_per_record, columns)
    found = estimate_size(load)
    if json:
        document: SizeJson = {"load": load, "estimate": found, "assumptions": list(assumptions(load, found))}
        print_json(document)
    else:
        console.print(size_text(load, found))


def size_text(load: SizedLoad, estimate: SizeEstimate) -> RenderableType:
    """Return the figures as a table, what the cores do, and the assumptions."""
    table = new_table("what", ">figure")
    for name, figure in (
        ("cores", f"{estimate.cores:,}"),
        ("memory", f"{estimate.memory_mib / 1024:,.1f} GiB"),
        ("requests to the store a day", f"{estimate.requests_per_day:,}"),
        ("data files of bronze a day", f"{estimate.bronze_files_per_day:,}"),
        ("data files of silver a day", f"{estimate.silver_files_per_day:,}"),
        ("commits a day", f"{estimate.commits_per_day:,}"),
        ("bronze and silver a day", f"{estimate.bytes_per_day / _GIB:,.1f} GiB"),
    ):
        table.add_row(name, figure)
    total = sum(estimate.cpu_s.values())
    parts = ", ".join(f"{name} {seconds / total:.0%}" for name, seconds in estimate.cpu_s.items())
    return Group(
        Text(
            f"{count_text(load.games, 'game')}, {load.active:,} of them active, {load.rows_per_day:,.0f} rows a day "
            f"({load.rows_per_day / DAY_S:,.0f} a second)"
        ),
        table,
        Text(f"What the cores do: {parts}."),
        Text("Assumed (docs/sizing.md):"),
        *(Text(f"  * {assumption}") for assumption in assumptions(load, estimate)),
    )


def assumptions(load: SizedLoad, estimate: SizeEstimate) -> Iterator[str]:
    """Yield what the figures rest on, a sentence each."""
    yield (
        f"A round every {duration_text(estimate.round_s)}, with new rows of {estimate.active:,.0f} games and "
        f"{estimate.rows_per_round:,.0f} rows in all."
    )
    if estimate.round_s > load.every_s:
        yield f"A round takes {duration_text(SHORTEST_ROUND_S)} or more, however many cores there are."
    yield f"A record has {load.bytes_per_record:,} bytes and its table {load.columns:,} columns, on average."
    yield f"Cores are busy {BUSY:.0%} of the time; rows come evenly. Size for the busiest hour, not for the mean."
    yield "A game's new rows are in one file of bronze: records are keyed by game."
    yield "Engine fleet, our writer (run.sink), cores as fast as those of the measurement."

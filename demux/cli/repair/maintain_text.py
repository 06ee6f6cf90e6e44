"""The result of maintenance as a table, and the games that hold it back; names are made printable. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from demux.cli.output.documents.repairs import FailedTableJson, MaintenanceJson
from demux.cli.output.print_json import error_json
from demux.cli.output.tables import failure_lines, new_table
from demux.core.settings.maintenance import NEVER
from demux.core.text import count_text, printable
from demux.operations.maintenance.report import HeldBack, TableMaintenance, sums

_MOST_LINES = 20
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def done_text(done: Sequence[TableMaintenance], held_back: Sequence[HeldBack], *, dry_run: bool) -> RenderableType:
    """Return the results by kind of table, the failures, and the games that hold old files of bronze back."""
    lines: list[RenderableType] = [_table(done)]
    lines += [Text(line, "yellow") for line in _held_lines(held_back)]
    lines += [
        Text(line, "red")
        for line in failure_lines((one.table.name, str(one.error)) for one in done if one.error is not None)
    ]
    if dry_run:
        lines.append(Text("nothing was changed"))
    return Group(*lines)


def done_content(done: Sequence[TableMaintenance], held_back: Sequence[HeldBack], *, dry_run: bool) -> MaintenanceJson:
    """Return the same as JSON data."""
    failed: list[FailedTableJson] = [
        {"table": one.table.name, **error_json(one.error)} for one in done if one.error is not None
    ]
    return {
        "dry_run": dry_run,
        "tables": list(sums(done)),
        "held_back": [
            {"game": one.game, "since": None if one.since is None else one.since.isoformat(), "files": one.files}
            for one in held_back
        ],
        "failed": failed,
    }


def next_line(due: datetime | None, every: str) -> str:
    """Return when maintenance is due next, as `demux plan` says it; `every` is the setting."""
    if every == NEVER:
        return "Maintenance: only by `demux maintain`."
    if due is None:
        return f"Maintenance: {every} after the first round of `demux run`."
    return f"Maintenance: due at {due:%Y-%m-%d %H:%M} UTC, at the end of a round of `demux run`."


def _table(done: Sequence[TableMaintenance]) -> Table:
    table = new_table("=tables", ">number", ">files", ">then", ">size", ">rows out", ">files out", ">their size")
    for one in sums(done):
        table.add_row(
            one.kind.value,
            f"{one.tables:,}",
            f"{one.files_before:,}",
            f"{one.files_after:,}",
            _size(one.bytes_after),
            f"{one.rows:,}",
            "not counted" if one.removed is None else f"{one.removed:,}",
            "" if one.removed_bytes is None else _size(one.removed_bytes),
        )
    return table


def _held_lines(held_back: Sequence[HeldBack]) -> Iterator[str]:
    for one in held_back[:_MOST_LINES]:
        since = "the beginning" if one.since is None else f"{one.since:%Y-%m-%d %H:%M} UTC"
        files = "old files" if one.files is None else count_text(one.files, "old file")
        stay = "stays" if one.files == 1 else "stay"
        yield f"{printable(one.game)} has not read bronze since {since}: {files} of bronze {stay} for it"
    if len(held_back) > _MOST_LINES:
        yield f"and {len(held_back) - _MOST_LINES} games more"


def _size(count: int) -> str:
    size, at = float(count), 0
    while size >= 1024 and at < len(_UNITS) - 1:
        size, at = size / 1024, at + 1
    return f"{size:,.0f} {_UNITS[at]}" if at == 0 or size >= 10 else f"{size:.1f} {_UNITS[at]}"
